// Package pods is the source of facts about terminating pods. It watches the pods on lost nodes: with one watch for
// each node or, above a number of nodes, with one watch for all. It does not watch pods of other nodes, so its memory
// grows with lost nodes, not with pods.
package pods
