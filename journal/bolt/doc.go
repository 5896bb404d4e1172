// Package bolt keeps a journal in one bbolt file.
//
// README.md of package journal specifies the file, and explains why each operation survives a crash. In short: records
// are chained by hash and never change. An append writes the record, the index and the new end of the journal in one
// bbolt transaction. A new file replaces the old one by a rename.
//
// Package rescue verifies a file before this package opens it, and repairs a damaged file. Package internal/layout
// defines the content of the file, and package internal/files the names of the files.
package bolt
