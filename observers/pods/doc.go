// Package pods is where facts of terminating pods come from: watches of the pods
// on lost nodes, one for each node or, beyond a number of them, one for all. Other
// nodes' pods are not looked at, so that memory grows with nodes, not with pods.
package pods
