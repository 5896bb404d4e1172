// Package cli is the command line of the controlplane program, one file per
// command. What it prints and takes is described in the module's README, and is
// all that other programs rely on.
package cli
