// Package journaltest is the suite that every journal.Store passes.
package journaltest
