// Package node is the machine for nodes. It has EKCO's data about the cluster's nodes and about terminating pods on
// lost nodes, the states of a node, and the conditions and rules for when EKCO clears or purges a node.
//
// [Capability] returns everything that package fsm needs. machine.Admit answers a person's request for a purge. Nodes
// have their own event types for facts (node.observed, node.gone, pod.terminating, …). The UID identifies a node: a
// Node with the same name and another UID is another node.
package node
