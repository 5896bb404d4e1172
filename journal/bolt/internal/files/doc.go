// Package files knows the files that a journal consists of: their names and modes,
// the lock, and how one takes another's place or is set aside, so that a crash at
// any point leaves a journal under its name. It does not know what is in them.
package files
