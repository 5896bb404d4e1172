// Package nodes is the source of facts about nodes. It watches all Nodes, and reduces them to what decisions need. If a
// node replaced another one of the same name, it records the former as gone and the latter as new. Of a flapping node
// it records only lasting states, with a count of the losses.
package nodes
