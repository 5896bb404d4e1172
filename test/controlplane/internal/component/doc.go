// Package component has the names of the programs in the controlplane binary. It
// is separate from package embedded, so that packages that need only the names
// compile without the programs.
package component
