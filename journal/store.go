package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Sentinel errors of a [Store].
var (
	// ErrClosed is returned by every call on a closed store.
	ErrClosed = errors.New("journal is closed")
	// ErrDamaged is returned if a record or the chain was changed since it was written.
	ErrDamaged = errors.New("journal is damaged")
	// ErrUnverified is returned by an opener that could not check the file, because the checking process was killed,
	// timed out or could not read. The file may be intact, and was not changed.
	ErrUnverified = errors.New("journal could not be verified")
	// ErrNotAJournal is returned by an opener for a file that never was a journal. It was not changed.
	ErrNotAJournal = errors.New("not an EKCO journal")
	// ErrLocked is returned by an opener if another process holds the journal. The message has its pid.
	ErrLocked = errors.New("journal is in use")
	// ErrOtherCluster is returned when a journal belongs to another cluster.
	ErrOtherCluster = errors.New("journal belongs to another cluster")
	// ErrOtherFormat is returned for a file of a format that this EKCO cannot read.
	ErrOtherFormat = errors.New("journal has an unknown format")
	// ErrNoSnapshot is returned when there is no snapshot yet.
	ErrNoSnapshot = errors.New("journal has no snapshot")
	// ErrUnwritable is returned by Append if the events could not be written to disk (disk full, file system
	// read-only). Nothing was appended, and the caller must not act. Append works again when the cause is gone.
	ErrUnwritable = errors.New("journal cannot be written")
)

// UnwritableError is an [ErrUnwritable] with its cause.
type UnwritableError struct{ Cause error }

func (e *UnwritableError) Error() string {
	return fmt.Sprintf("%v, nothing was recorded: %v; free space on its file system, or make it writable again", ErrUnwritable, e.Cause)
}

// Unwrap makes errors.Is hold for ErrUnwritable and for the cause.
func (e *UnwritableError) Unwrap() []error { return []error{ErrUnwritable, e.Cause} }

// Store is an append-only log of events. All methods are safe for concurrent use. The suite in journaltest tests what
// every implementation must do.
type Store interface {
	// Append writes the drafts as one unit and returns them as events, in order and with consecutive sequence
	// numbers. If it returns no error, they survive a crash of the process and of the machine. If it returns an
	// error, none of them was appended; but if ctx ended during the write, all of them or none may have been.
	Append(ctx context.Context, drafts ...Draft) ([]Event, error)

	// Read yields the matching events, in the query's order: all that were appended before the call, and maybe later
	// ones. An error ends the sequence.
	Read(ctx context.Context, query Query) iter.Seq2[Event, error]

	// Follow yields every event with a sequence number above after, then waits for more, until ctx ends (then the
	// sequence ends without an error) or the store is closed (then the last pair has ErrClosed).
	Follow(ctx context.Context, after uint64) iter.Seq2[Event, error]

	// SaveSnapshot saves a folded state, replacing an older one.
	SaveSnapshot(ctx context.Context, snapshot Snapshot) error

	// Snapshot returns the newest snapshot, or ErrNoSnapshot.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Stat describes the journal.
	Stat(ctx context.Context) (Stat, error)

	// BindCluster makes the journal belong to the cluster with this UID (of namespace kube-system) if it belongs to
	// none, and returns ErrOtherCluster, with both UIDs, if it belongs to another.
	BindCluster(ctx context.Context, uid string) error

	// Close ends all followers and releases the journal.
	Close() error
}

// Query selects events. All fields that are set must match; the zero Query selects everything.
type Query struct {
	// After and Before bound the sequence number, both exclusive; Before 0
	// means no bound.
	After, Before uint64
	// Since and Until bound the time: Since inclusive, Until exclusive.
	Since, Until time.Time
	// Node matches Subject.Node.
	Node string
	// Kind, Name and UID match the subject.
	Kind, Name, UID string
	// Action matches the action id.
	Action string
	// Types matches any of the types.
	Types []Type
	// Reverse yields the newest first.
	Reverse bool
	// Limit ends the sequence after that many events; 0 means no limit.
	Limit int
}

// Matches reports whether the event is selected; it ignores the limit and the order.
func (q Query) Matches(e Event) bool {
	switch {
	case e.Seq <= q.After, q.Before != 0 && e.Seq >= q.Before:
		return false
	case !q.Since.IsZero() && e.Time.Before(q.Since), !q.Until.IsZero() && !e.Time.Before(q.Until):
		return false
	case q.Node != "" && e.Subject.Node != q.Node,
		q.Kind != "" && e.Subject.Kind != q.Kind,
		q.Name != "" && e.Subject.Name != q.Name,
		q.UID != "" && e.Subject.UID != q.UID,
		q.Action != "" && e.Action != q.Action:
		return false
	}
	if len(q.Types) == 0 {
		return true
	}
	for _, t := range q.Types {
		if t == e.Type {
			return true
		}
	}
	return false
}

// Snapshot is a folded state and the last event in it.
type Snapshot struct {
	Seq uint64 `json:"seq"`
	// Fold is the version of State: a newer EKCO ignores a snapshot that it cannot read and replays the events.
	Fold  string    `json:"fold"`
	Time  time.Time `json:"time"`
	State []byte    `json:"state"`
}

// Stat describes a journal.
type Stat struct {
	JournalID  string `json:"journal_id"`
	Format     int    `json:"format"`
	ClusterUID string `json:"cluster_uid,omitempty"`
	// FirstSeq and LastSeq are 0 if the journal is empty. Events is smaller than their range if retention has moved
	// events out.
	FirstSeq    uint64    `json:"first_seq"`
	LastSeq     uint64    `json:"last_seq"`
	Events      uint64    `json:"events"`
	FirstTime   time.Time `json:"first_time,omitzero"`
	LastTime    time.Time `json:"last_time,omitzero"`
	SnapshotSeq uint64    `json:"snapshot_seq,omitempty"`
	// Path and Bytes are empty for a store without a file. FreeBytes is how much of Bytes a compaction would free.
	Path      string `json:"path,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	FreeBytes int64  `json:"free_bytes,omitempty"`
}
