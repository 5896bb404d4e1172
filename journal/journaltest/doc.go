// Package journaltest has the test suite for every journal.Store.
package journaltest
