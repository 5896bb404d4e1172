// Package layout is how a journal of format 1 lies in a bbolt file: its buckets and
// what they hold, the blocks of its index, and what an append writes. README.md of
// package journal specifies it.
//
// It opens no file, and finds damage only as far as one value shows it by itself:
// whether records chain and the index says what they say, it does not know.
package layout
