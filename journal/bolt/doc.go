// Package bolt keeps a journal in one bbolt file.
//
// README.md of package journal specifies the file and argues why each operation
// survives a crash. In short: records are chained by hash and never change; an
// append, its index block and the new end of the journal are one bbolt
// transaction; everything that replaces the file does so by rename.
//
// Package rescue verifies a file before it is opened here, and repairs what is
// damaged. Both know by internal/layout what is in the file, and by internal/files
// which files there are.
package bolt
