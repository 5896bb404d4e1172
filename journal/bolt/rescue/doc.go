// Package rescue reads files that may be damaged, and repairs them: it verifies a journal, distinguishes a damaged
// one from a file that never was one, and salvages its events. It trusts nothing in a file and reads bbolt's pages
// itself, if possible in another process.
//
// Package bolt opens only files that this package found intact; this package does not use a store. README.md of
// package journal says which damage it finds, and which not.
package rescue
