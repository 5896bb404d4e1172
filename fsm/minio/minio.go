package minio

import (
	"cmp"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Machine is the name of the machine.
const Machine = "minio"

// The states of MinIO.
const (
	// Absent: there is no highly available one that EKCO shall do anything about.
	Absent journal.State = "Absent"
	// Single: Service minio does not lead to the highly available one.
	Single journal.State = "Single"
	// Migrating: it does not yet, and its data is on the way there.
	Migrating journal.State = "Migrating"
	// HA: it does.
	HA journal.State = "HA"
)

// Policy is what the configuration says of MinIO.
type Policy struct {
	// Off says which setting keeps EKCO from doing anything about MinIO, "" if none does.
	Off string
	// Patience is how long a replica that waits for its volume keeps it: a node that is
	// restarted is back by then. 0 means 5 minutes.
	Patience time.Duration
	// Migrates is set where EKCO has the highly available one take the place of the single
	// one.
	Migrates bool
}

// patience returns that of the policy.
func patience(policy any) time.Duration {
	p, _ := policy.(Policy)
	return cmp.Or(p.Patience, 5*time.Minute)
}

// off returns why EKCO does nothing about MinIO, "" if it may. A policy that says nothing
// of it does nothing.
func off(policy any) string {
	p, known := policy.(Policy)
	if !known {
		return "nothing is configured"
	}
	return p.Off
}

// MinIO is what the machine keeps of it.
type MinIO struct {
	journal.MinioFacts
	// Set is what EKCO made of it last. As long as what was observed is older, it holds.
	Set journal.MinioScaled `json:"set,omitzero"`
	// Made are the kinds of action of which the last made its change, whatever came of it
	// then.
	Made map[journal.ActionKind]bool `json:"made,omitempty"`
	// Ours is up to when EKCO copied to the highly available one, which has not served since:
	// what was changed last before that is a copy. Zero if it did not.
	Ours time.Time `json:"ours,omitzero"`
	// Source is the id of the store that was copied then, or, once EKCO has switched, before that.
	Source string `json:"source,omitempty"`
	// Switched is set while the Service leads there because EKCO had it do so, and Unread if
	// that was without what the single one had to the last.
	Switched bool `json:"switched,omitempty"`
	Unread   bool `json:"unread,omitempty"`
	// From is the UID of the Deployment that it led to before.
	From string `json:"from,omitempty"`
	// Version is the resource version that the Service had after that switch.
	Version string `json:"version,omitempty"`
	// Fingerprint is that of all that the single one had then, Target the id of the other one's store.
	Fingerprint string `json:"fingerprint,omitempty"`
	Target      string `json:"target,omitempty"`
	// Taken is the UID of the Deployment whose place the highly available one has taken by EKCO's
	// switch, since when the Service has led nowhere but there. It has the newest data.
	Taken string `json:"taken,omitempty"`
	// Past is how all that is known.
	Past past `json:"past,omitzero"`
	// Lacking are the replicas that lack their volumes.
	Lacking []lacking `json:"lacking,omitempty"`
}

// past are the events that a replay needs to come to the same, besides the last facts and the last action of each kind.
type past struct {
	// Copied is the migration that left Ours and Source, Switched the one that left Taken, and what belongs to it.
	Copied   left `json:"copied,omitzero"`
	Switched left `json:"switched,omitzero"`
	// Forgot are the last facts by which each of those did not hold any more: that the Service leads to the highly
	// available one, that it does not, and that it leads elsewhere.
	Forgot [3]uint64 `json:"forgot,omitzero"`
}

// left is an action, and the event with MinIO's last facts when it ended.
type left struct {
	Action string `json:"action"`
	Facts  uint64 `json:"facts"`
}

// needs adds the events.
func (m *MinIO) needs(needs *fsm.Needs) {
	if !m.Ours.IsZero() {
		needs.Ended(m.Past.Copied.Action, m.Past.Copied.Facts)
	}
	if m.Taken != "" {
		needs.Ended(m.Past.Switched.Action, m.Past.Switched.Facts)
	}
	for _, seq := range m.Past.Forgot {
		needs.Event(seq)
	}
}

func of(t *fsm.Thing) *MinIO { return t.Data.(*MinIO) }

// observed reports whether MinIO is there.
func observed(t *fsm.Thing) bool { return t.FactsSeq != 0 && t.GoneSeq == 0 }

// replicas returns how many are asked for, as far as is known.
func (m *MinIO) replicas() int {
	if m.Generation < m.Set.Generation {
		return m.Set.Replicas
	}
	return m.Replicas
}

// Known returns the facts of what exists, as far as the journal knows, by name.
func Known(s *fsm.State) map[string]journal.MinioFacts {
	known := map[string]journal.MinioFacts{}
	for _, t := range s.Things {
		if t.Machine() == Machine && observed(t) {
			facts := of(t).MinioFacts
			facts.UID = t.UID
			known[t.Name] = facts
		}
	}
	return known
}

// open returns the open actions of the kind about the thing.
func open(t *fsm.Thing, w *fsm.World, kind journal.ActionKind) (open []*journal.ActionRecord) {
	for _, rec := range w.Open(t) {
		if rec.Kind == kind {
			open = append(open, rec)
		}
	}
	return open
}
