// Package files defines the files of a journal: their names and modes, the lock, and how a file is renamed or replaces
// another one. After a crash at any point there is still a journal at the journal's path. The package does not know the
// content of the files.
package files
