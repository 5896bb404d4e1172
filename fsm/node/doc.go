// Package node is the machine of a node: what EKCO knows of the cluster's nodes and of
// the pods that hang on lost ones, where a node belongs, and when it is cleared or
// purged, by whom and by which rules.
//
// [Capability] is what package fsm is given. [Admit] answers a person who asks for a
// purge. A node's facts come as events of their own (node.observed, node.gone,
// pod.terminating, …), and its identity is the UID: a Node of the same name with
// another UID is another one.
package node
