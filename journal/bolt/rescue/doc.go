// Package rescue verifies and repairs a journal's file that may be damaged. It distinguishes a damaged journal from a
// file that never was a journal, and copies the readable events into a new journal. A damaged file can crash bbolt, so
// the package reads bbolt's pages itself, if possible in another process.
//
// Package bolt opens only files that this package has verified. README.md of package journal says which damage this
// package detects.
package rescue
