// Package files defines the files of a journal: their names and modes, the lock, and how one replaces another or is
// renamed, so that a crash at any point leaves a journal under its name. It does not know their content.
package files
