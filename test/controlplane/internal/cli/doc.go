// Package cli is the command line of the controlplane program, with one file per command. The module's README describes
// its arguments and output; other programs may rely only on these.
package cli
