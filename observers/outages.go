package observers

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// ActorAPI is the actor of events about outages of the Kubernetes API.
const ActorAPI = "observer/api"

// outages decides what to record about outages of the Kubernetes API. Several outages while the journal cannot be
// written are recorded as one.
type outages struct {
	differ *Differ[outage]
	// now returns the time by the journal's clock.
	now func() time.Time
}

// outage is one outage, or several that are recorded as one.
type outage struct {
	// first is the first outage that may be missing in the journal; last is the newest outage.
	first, last loss
	over        bool
}

// loss is the start of an outage.
type loss struct {
	number int
	since  time.Time
	err    string
}

// apiKey is the only key of the differ.
const apiKey = "api"

func newOutages(now func() time.Time) *outages {
	o := &outages{now: now}
	o.differ = NewDiffer(o.recordsFor, nil)
	return o
}

func (o *outages) begin(since time.Time, err string) {
	o.differ.Change(func(facts *Facts[outage]) {
		latest, ok := facts.Now[apiKey]
		if ok && !latest.over {
			return
		}
		begun := loss{number: latest.last.number + 1, since: since, err: err}
		switch recorded := recordedUntil(facts); {
		case !ok || recorded >= latest.last.number:
			latest.first = begun
		case recorded >= latest.first.number: // the end of the first outage was being written
			latest.first = latest.last
		}
		latest.last, latest.over = begun, false
		facts.Now[apiKey] = latest
		facts.Touch(apiKey, time.Time{})
	})
}

// recordedUntil returns the number of the last outage with a recorded end.
func recordedUntil(facts *Facts[outage]) int {
	for _, was := range facts.Recorded[apiKey] {
		if was.over {
			return was.last.number
		}
	}
	return 0
}

func (o *outages) end() {
	o.differ.Change(func(facts *Facts[outage]) {
		if latest, ok := facts.Now[apiKey]; ok && !latest.over {
			latest.over = true
			facts.Now[apiKey] = latest
			facts.Touch(apiKey, time.Time{})
		}
	})
}

// recordsFor implements [RecordFunc].
func (o *outages) recordsFor(d Difference[outage]) Records[outage] {
	now, begun := *d.Now, false
	for _, was := range d.Was {
		if was.over && was.last.number == now.last.number {
			return Records[outage]{InJournal: d.Was}
		}
		now.first, begun = unrecorded(was, now)
	}
	records := Records[outage]{InJournal: []outage{now}}
	if !begun {
		records.Drafts = append(records.Drafts, draftOf(journal.TypeAPILost, journal.APILost{Error: now.first.err}))
	}
	if now.over {
		lostAt := o.now().Add(-time.Since(now.first.since)).UTC()
		records.Drafts = append(records.Drafts, draftOf(journal.TypeAPIRecovered, journal.APIRecovered{LostAt: lostAt}))
	}
	return records
}

// unrecorded returns the start of the first outage that is not fully recorded, and whether that start is recorded.
func unrecorded(was, now outage) (first loss, begun bool) {
	switch {
	case !was.over:
		return was.first, true
	case was.last.number >= now.first.number: // that outage has ended since
		return now.last, false
	}
	return now.first, false
}

func draftOf(kind journal.Type, payload journal.Payload) journal.Draft {
	return journal.Draft{Type: kind, Actor: ActorAPI, Subject: journal.ClusterSubject, Payload: payload}
}

// due returns the drafts in two parts: those to write before the facts of the sources, and those to write after them.
func (o *outages) due(at time.Time) (batch Batch, before, after []journal.Draft) {
	batch = o.differ.Due(at)
	for i, draft := range batch.Drafts {
		if draft.Type == journal.TypeAPIRecovered {
			return batch, batch.Drafts[:i], batch.Drafts[i:]
		}
	}
	return batch, batch.Drafts, nil
}
