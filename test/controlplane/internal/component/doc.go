// Package component names the programs in the controlplane binary. It
// is apart from package embedded so that naming them does not mean compiling
// them.
package component
