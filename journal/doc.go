// Package journal is EKCO's memory: an append-only, hash-chained log of
// everything EKCO saw, decided and did, and the vocabulary it is written in.
//
// The envelope is [Event]. [Catalog] lists every event type with its payload.
// [Store] is what a log must be able to do; the subpackage bolt keeps one in a
// bbolt file, the subpackage memory keeps one for tests, and the subpackage
// journaltest holds the suite both pass. README.md beside this file specifies
// the bytes on disk.
package journal
