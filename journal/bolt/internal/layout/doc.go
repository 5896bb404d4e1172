// Package layout defines format 1 of a journal in a bbolt file: the buckets and their content, the blocks of the index,
// and the writes of an append. README.md of package journal specifies the format.
//
// The package opens no file. It detects damage in a single value, but does not check the chain of hashes, or whether
// the index matches the records.
package layout
