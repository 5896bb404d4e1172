// Package kotsadm is the source of facts about kotsadm's database. EKCO may not watch its StatefulSet, so it reads it
// by name at intervals, and immediately after it has changed it.
package kotsadm

import (
	"github.com/replicatedhq/ekco/internal/kotsadm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// New returns the source. known are the facts in the journal, by name; off is the setting that switches it off, or
// "".
func New(api kotsadm.API, known map[string]journal.KotsadmFacts, off string) observers.Source {
	return observers.PollOne(observers.PolledOne[journal.KotsadmFacts]{
		Machine: "kotsadm", Subject: journal.KotsadmDatabase, Get: api.Read, Known: known, Off: off,
		UID: func(facts journal.KotsadmFacts) string { return facts.UID },
	})
}
