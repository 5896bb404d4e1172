package pods

// MaxWatches is up to how many nodes have a watch of their own.
const MaxWatches = maxWatches
