// Package rescue reads files that may be damaged, and repairs them: it verifies a
// journal, tells a damaged one from a file that never was one, and saves what can be
// saved of it. It trusts nothing in a file and reads bbolt's pages by itself, where
// possible in a process of its own.
//
// Package bolt opens only what is found sound here; this package knows nothing of a
// store. README.md of package journal says what is found, and what is not.
package rescue
