// Package layout defines a journal of format 1 in a bbolt file: its buckets and their content, the blocks of its
// index, and the writes of an append. README.md of package journal specifies it.
//
// It opens no file. It finds damage of single values only; it does not check whether records chain and the index
// matches them.
package layout
