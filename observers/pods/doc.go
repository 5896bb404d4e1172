// Package pods is the source of facts about terminating pods: watches of the pods on lost nodes, one for each node
// or, beyond a number of them, one for all. It does not watch pods of other nodes, so memory grows with lost nodes,
// not with pods.
package pods
