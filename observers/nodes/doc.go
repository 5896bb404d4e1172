// Package nodes is the source of facts about nodes: a watch of all Nodes, reduced to what EKCO judges by. A node that
// replaced another of its name is recorded as gone and as new. Of a flapping node only what lasts is recorded, with a
// count.
package nodes
