// Package bolt keeps a journal in one bbolt file.
//
// README.md of package journal specifies the file and argues why each operation
// survives a crash. In short: records are chained by hash and never change; an
// append, its index block and the new end of the journal are one bbolt
// transaction; everything that replaces the file does so by rename.
//
// Package rescue verifies a file before this package opens it, and repairs damage. Both use internal/layout for the
// content of the file, and internal/files for the files' names.
package bolt
