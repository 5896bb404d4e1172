package observers

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// apiFacts are the outages the journal is told of. Outages that follow one
// another while the journal cannot be written are recorded as one.
type apiFacts struct {
	// outage is the one that is not over, or whose end is not written.
	outage *outage
	// next began while the end of outage was being written.
	next *outage
}

type outage struct {
	since time.Time
	err   string
	// begun: its api.lost is written. over: it has ended.
	begun, over bool
}

// apiChanges is what is due: before goes ahead of the facts seen meanwhile,
// after follows them.
type apiChanges struct {
	before, after []journal.Draft
}

func (a *apiFacts) lose(since time.Time, err string) {
	begun := &outage{since: since, err: err}
	switch {
	case a.outage == nil:
		a.outage = begun
	case a.outage.over:
		a.outage.over, a.next = false, begun
	}
}

func (a *apiFacts) recover() {
	if a.outage != nil {
		a.outage.over = true
	}
}

// waiting reports whether something is not written.
func (a *apiFacts) waiting() bool {
	return a.outage != nil && (!a.outage.begun || a.outage.over)
}

// due returns what the journal lacks, with times by its clock.
func (a *apiFacts) due(now func() time.Time) apiChanges {
	var due apiChanges
	if a.outage == nil {
		return due
	}
	a.next = nil
	if !a.outage.begun {
		due.before = []journal.Draft{{
			Type: journal.TypeAPILost, Actor: ActorAPI, Subject: journal.ClusterSubject,
			Payload: journal.APILost{Error: a.outage.err},
		}}
	}
	if a.outage.over {
		due.after = []journal.Draft{{
			Type: journal.TypeAPIRecovered, Actor: ActorAPI, Subject: journal.ClusterSubject,
			Payload: journal.APIRecovered{LostAt: now().Add(-time.Since(a.outage.since)).UTC()},
		}}
	}
	return due
}

func (a *apiFacts) written(due apiChanges) {
	if len(due.before) > 0 {
		a.outage.begun = true
	}
	if len(due.after) > 0 {
		a.outage, a.next = a.next, nil
	}
}
