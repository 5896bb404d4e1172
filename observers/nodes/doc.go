// Package nodes is where facts of nodes come from: a watch of all Node objects,
// reduced to what EKCO judges by. A node replaced under its name is written as
// gone and as a new one. Of a node that comes and goes again and again only what
// lasts is written, with a count.
package nodes
