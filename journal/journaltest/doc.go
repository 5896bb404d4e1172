// Package journaltest has a test suite that every implementation of journal.Store must pass.
package journaltest
