// Package node is the machine of a node: what EKCO knows about the cluster's nodes and the pods stuck on lost ones,
// each node's state, and when EKCO clears or purges it, under which rules.
//
// [Capability] is what package fsm gets. machine.Admit answers a person who requests a purge. A node's facts come as
// events of their own types (node.observed, node.gone, pod.terminating, …). Its identity is the UID: a Node with the
// same name and another UID is another node.
package node
