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
	// Migrating: Service minio does not select the highly available MinIO yet, and EKCO is copying the data.
	Migrating journal.State = "Migrating"
	// HA: Service minio selects the highly available MinIO.
	HA journal.State = "HA"
)

// Policy is the part of the configuration that decisions about MinIO depend on.
type Policy struct {
	// Off names the setting that forbids EKCO to manage MinIO, or is "".
	Off string
	// VolumeWait is how long a replica waits for its volume before EKCO moves the replica; 0 means 5 minutes. It must
	// be longer than the restart of a node takes.
	VolumeWait time.Duration
	// Migrates is set if EKCO may replace standalone MinIO by the highly available MinIO.
	Migrates bool
}

// volumeWait returns [Policy.VolumeWait], or the default.
func volumeWait(policy any) time.Duration {
	p, _ := policy.(Policy)
	return cmp.Or(p.VolumeWait, 5*time.Minute)
}

// offReason returns why EKCO must not change MinIO, or "".
func offReason(policy any) string {
	p, known := policy.(Policy)
	if !known {
		return "nothing is configured"
	}
	return p.Off
}

// MinIO is the machine's data about MinIO.
type MinIO struct {
	journal.MinioFacts
	// Set has the facts after EKCO last scaled MinIO. It is used until EKCO observes facts that are as new.
	Set journal.MinioScaled `json:"set,omitzero"`
	// Made says for each kind of action whether the last action made its change, even if it then failed.
	Made map[journal.ActionKind]bool `json:"made,omitempty"`
	// Ours is when EKCO last copied data to the highly available MinIO. It is zero if EKCO copied nothing, or if that
	// MinIO has served clients since. Data written to that MinIO before Ours is EKCO's copy.
	Ours time.Time `json:"ours,omitzero"`
	// Source is the id of the store from which EKCO copied, Target that of the highly available MinIO's store.
	Source string `json:"source,omitempty"`
	Target string `json:"target,omitempty"`
	// Switched is set while the Service selects the highly available MinIO because EKCO switched it. Unread is set if
	// EKCO switched without reading the last changes of standalone MinIO.
	Switched bool `json:"switched,omitempty"`
	Unread   bool `json:"unread,omitempty"`
	// From is the UID of the Deployment whose pods the Service selected before EKCO's switch.
	From string `json:"from,omitempty"`
	// Version is the resource version of the Service after EKCO's switch.
	Version string `json:"version,omitempty"`
	// Fingerprint is the fingerprint of all data of standalone MinIO at the switch.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Taken is the UID of the Deployment from which EKCO switched the Service to the highly available MinIO. It is
	// cleared when the Service selects other pods, because then the highly available MinIO may lack the newest data.
	Taken string `json:"taken,omitempty"`
	// Needed has the events from which a replay gets these fields.
	Needed neededEvents `json:"past,omitzero"`
	// Lacking are the replicas whose volume is on no node.
	Lacking []lacking `json:"lacking,omitempty"`
}

// neededEvents are the events that a replay needs to build the same state, in addition to the last facts and the last
// action of each kind.
type neededEvents struct {
	// Copied is the migration that set Ours, Source and Target. Switched is the migration that set Taken and the fields
	// about the switch.
	Copied   endedAction `json:"copied,omitzero"`
	Switched endedAction `json:"switched,omitzero"`
	// Forgot has the last events that cleared Ours (the Service selected the highly available MinIO), Switched (it did
	// not), and Taken (it selected other pods).
	Forgot [3]uint64 `json:"forgot,omitzero"`
}

// endedAction is an action that has ended. Facts is the number of the event with MinIO's newest facts at that time.
type endedAction struct {
	Action string `json:"action"`
	Facts  uint64 `json:"facts"`
}

// needs adds the events in Needed.
func (m *MinIO) needs(needs *fsm.Needs) {
	if !m.Ours.IsZero() {
		needs.Ended(m.Needed.Copied.Action, m.Needed.Copied.Facts)
	}
	if m.Taken != "" {
		needs.Ended(m.Needed.Switched.Action, m.Needed.Switched.Facts)
	}
	for _, seq := range m.Needed.Forgot {
		needs.Event(seq)
	}
}

func of(t *fsm.Thing) *MinIO { return t.Data.(*MinIO) }

// replicas returns the number of replicas in the StatefulSet's spec, according to the newest known facts.
func (m *MinIO) replicas() int {
	if m.Generation < m.Set.Generation {
		return m.Set.Replicas
	}
	return m.Replicas
}

// Known returns the facts about each MinIO that exists according to the journal, by name.
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

func openActions(t *fsm.Thing, w *fsm.World, kind journal.ActionKind) (open []*journal.ActionRecord) {
	for _, rec := range w.Open(t) {
		if rec.Kind == kind {
			open = append(open, rec)
		}
	}
	return open
}
