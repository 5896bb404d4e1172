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
	// Absent: there is no highly available MinIO that EKCO manages.
	Absent journal.State = "Absent"
	// Single: Service minio does not select the highly available MinIO.
	Single journal.State = "Single"
	// Migrating: it does not yet, and EKCO is copying the data.
	Migrating journal.State = "Migrating"
	// HA: Service minio selects the highly available MinIO.
	HA journal.State = "HA"
)

// Policy is what the configuration says about MinIO.
type Policy struct {
	// Off names the setting that keeps EKCO from managing MinIO, "" if none does.
	Off string
	// VolumeWait is how long a replica that waits for its volume keeps it: a node that restarts is back by then. 0 means
	// 5 minutes.
	VolumeWait time.Duration
	// Migrates is set if EKCO may replace standalone MinIO by the highly available one.
	Migrates bool
}

// volumeWait returns that of the policy, or the default.
func volumeWait(policy any) time.Duration {
	p, _ := policy.(Policy)
	return cmp.Or(p.VolumeWait, 5*time.Minute)
}

// off returns why EKCO does nothing about MinIO, "" if it may. It does nothing without a policy.
func off(policy any) string {
	p, known := policy.(Policy)
	if !known {
		return "nothing is configured"
	}
	return p.Off
}

// MinIO is what the machine keeps about MinIO.
type MinIO struct {
	journal.MinioFacts
	// Set is what EKCO set last. It counts while the observed state is older.
	Set journal.MinioScaled `json:"set,omitzero"`
	// Made are the kinds of action of which the last one made its change, however it ended.
	Made map[journal.ActionKind]bool `json:"made,omitempty"`
	// Ours is the time until which EKCO copied to the highly available MinIO, if that has not served since: what was
	// last changed before is a copy. Zero if it did not copy.
	Ours time.Time `json:"ours,omitzero"`
	// Source is the id of the store that was copied then, or, after EKCO's switch, before that.
	Source string `json:"source,omitempty"`
	// Switched is set while the Service selects the highly available MinIO because EKCO switched it, and Unread if that
	// was without the last writes to standalone MinIO.
	Switched bool `json:"switched,omitempty"`
	Unread   bool `json:"unread,omitempty"`
	// From is the UID of the Deployment whose pods it selected before.
	From string `json:"from,omitempty"`
	// Version is the resource version that the Service had after that switch.
	Version string `json:"version,omitempty"`
	// Fingerprint is that of all data of standalone MinIO at the switch, Target the id of the other store.
	Fingerprint string `json:"fingerprint,omitempty"`
	Target      string `json:"target,omitempty"`
	// Taken is the UID of the Deployment that the highly available MinIO replaced by EKCO's switch, if the Service has
	// selected only the highly available one, or no pods, since. That has the newest data.
	Taken string `json:"taken,omitempty"`
	// Past are the events from which all that is known.
	Past past `json:"past,omitzero"`
	// Lacking are the replicas without a volume.
	Lacking []lacking `json:"lacking,omitempty"`
}

// past are the events that a replay needs to build the same state, in addition to the last facts and the last action of
// each kind.
type past struct {
	// Copied is the migration that left Ours and Source, Switched the one that left Taken, and what belongs to it.
	Copied   left `json:"copied,omitzero"`
	Switched left `json:"switched,omitzero"`
	// Forgot are the last facts that ended each of those: that the Service selects the highly available MinIO, that it
	// does not, and that it selects other pods.
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

// replicas returns how many replicas the StatefulSet specifies, as far as is known.
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
		if t.Machine() == Machine && t.Exists() {
			facts := of(t).MinioFacts
			facts.UID = t.UID
			known[t.Name] = facts
		}
	}
	return known
}

// open returns the open actions of the kind about the entity.
func open(t *fsm.Thing, w *fsm.World, kind journal.ActionKind) (open []*journal.ActionRecord) {
	for _, rec := range w.Open(t) {
		if rec.Kind == kind {
			open = append(open, rec)
		}
	}
	return open
}
