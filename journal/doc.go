// Package journal defines EKCO's journal, an append-only log of everything that EKCO observed, decided and did. A chain
// of hashes shows whether events were changed. The package also defines the types of the events.
//
// [Event] has the fields that every event has. [Catalog] lists every event type with its payload. [Store] is the
// interface of a journal. Subpackage bolt stores a journal in a bbolt file, subpackage memory stores one in memory for
// tests, and subpackage journaltest tests both. README.md in this directory specifies the format on disk.
package journal
