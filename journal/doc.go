// Package journal is EKCO's memory: an append-only, hash-chained log of everything EKCO saw, decided and did, and the
// types of its events.
//
// The envelope is [Event]. [Catalog] lists every event type with its payload. [Store] is the interface of a log;
// subpackage bolt stores one in a bbolt file, subpackage memory stores one for tests, and subpackage journaltest has
// the test suite for both. README.md next to this file specifies the bytes on disk.
package journal
