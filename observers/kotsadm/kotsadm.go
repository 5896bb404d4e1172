// Package kotsadm is where facts of kotsadm's database come from: its StatefulSet is read
// by its name now and then, since a watch is not granted, and at once when EKCO has
// changed it.
package kotsadm

import (
	"github.com/replicatedhq/ekco/internal/kotsadm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// New returns the source. known is what the journal has, by name; off, unless empty, is
// the setting for which nobody looks.
func New(api kotsadm.API, known map[string]journal.KotsadmFacts, off string) observers.Source {
	return observers.PollOne(observers.PolledOne[journal.KotsadmFacts]{
		Machine: "kotsadm", Subject: journal.KotsadmDatabase, Get: api.Read, Known: known, Off: off,
		UID: func(facts journal.KotsadmFacts) string { return facts.UID },
	})
}
