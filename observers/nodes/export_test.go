package nodes

// FlapCalm is how long a node that flaps must be reachable for that to be told.
const FlapCalm = flapCalm
