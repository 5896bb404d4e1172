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
	// ErrDamaged is returned if the content of the journal was changed after EKCO wrote it.
	ErrDamaged = errors.New("journal is damaged")
	// ErrUnverified is returned if a journal could not be opened because the process that verifies the file was killed,
	// took too long or could not read it. The file may be intact, and was not changed.
	ErrUnverified = errors.New("journal could not be verified")
	// ErrNotAJournal is returned for a file that never was a journal. The file was not changed.
	ErrNotAJournal = errors.New("not an EKCO journal")
	// ErrLocked is returned if another process has the journal open. The message has its pid, if known.
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
	// ErrFileReplaced is the cause of an [ErrUnwritable] if the journal's file is not the one that EKCO opened.
	ErrFileReplaced = errors.New("another program deleted or replaced the journal's file")
)

// UnwritableError is an [ErrUnwritable] with the error that caused it.
type UnwritableError struct{ Cause error }

func (e *UnwritableError) Error() string {
	return fmt.Sprintf("%v, nothing was recorded: %v; %s", ErrUnwritable, e.Cause, e.Advice())
}

// Advice says how the journal can be made writable again.
func (e *UnwritableError) Advice() string {
	return UnwritableAdvice(errors.Is(e.Cause, ErrFileReplaced))
}

// UnwritableAdvice is [UnwritableError.Advice] for a caller that only knows whether the cause is an [ErrFileReplaced].
func UnwritableAdvice(fileReplaced bool) string {
	if fileReplaced {
		return `put the file back; or restart EKCO, which begins a new journal with what the cluster has of this one, and waits for "ekco journal accept"`
	}
	return "free space on its file system, or make it writable again"
}

// Unwrap returns ErrUnwritable and the cause, so that errors.Is finds both.
func (e *UnwritableError) Unwrap() []error { return []error{ErrUnwritable, e.Cause} }

// Store is an append-only log of events. All methods are safe for concurrent use. Package journaltest has the tests for
// implementations.
type Store interface {
	// Append writes the drafts as one unit and returns them as events, in order and with consecutive sequence numbers.
	// If it returns no error, the events are on disk and survive a crash of the machine. If it returns an error, it has
	// appended no event, or possibly all of them if ctx ended during the write.
	Append(ctx context.Context, drafts ...Draft) ([]Event, error)

	// Read yields the matching events in the query's order. It yields all events that were appended before the call,
	// and may yield later events. An error ends the sequence.
	Read(ctx context.Context, query Query) iter.Seq2[Event, error]

	// Follow yields every event with a sequence number above after, and then waits for new events. When ctx ends, the
	// sequence ends without an error. When the store is closed, the last pair has ErrClosed.
	Follow(ctx context.Context, after uint64) iter.Seq2[Event, error]

	// SaveSnapshot saves a folded state in place of the older snapshot.
	SaveSnapshot(ctx context.Context, snapshot Snapshot) error

	// Snapshot returns the newest snapshot, or ErrNoSnapshot.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Stat describes the journal.
	Stat(ctx context.Context) (Stat, error)

	// BindCluster stores that the journal belongs to this cluster, unless it already belongs to a cluster. If that is
	// another cluster, BindCluster returns ErrOtherCluster, with both UIDs. uid is the UID of namespace kube-system.
	BindCluster(ctx context.Context, uid string) error

	// Close ends all followers and releases the journal.
	Close() error
}

// Query selects events. All fields that are set must match; the zero Query selects everything.
type Query struct {
	// After and Before limit the sequence number, both exclusive. Before 0 means no limit.
	After, Before uint64
	// Since and Until limit the time: Since inclusive, Until exclusive.
	Since, Until time.Time
	// Node matches Subject.Node.
	Node string
	// Kind, Name and UID match the subject.
	Kind, Name, UID string
	// Action matches the action id.
	Action string
	// Types matches an event that has one of these types.
	Types []Type
	// Reverse yields the newest events first.
	Reverse bool
	// Limit ends the sequence after that many events; 0 means no limit.
	Limit int
}

// Matches reports whether the query selects the event. It ignores Limit and Reverse.
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

// Snapshot is the state after all events up to number Seq.
type Snapshot struct {
	Seq uint64 `json:"seq"`
	// Fold names the format of State. An EKCO that does not know the format ignores the snapshot, and replays the
	// events.
	Fold  string    `json:"fold"`
	Time  time.Time `json:"time"`
	State []byte    `json:"state"`
}

// Stat describes a journal.
type Stat struct {
	JournalID  string `json:"journal_id"`
	Format     int    `json:"format"`
	ClusterUID string `json:"cluster_uid,omitempty"`
	// FirstSeq and LastSeq are 0 if the journal is empty. Events is the number of stored events. It is smaller than the
	// range if retention has moved events out.
	FirstSeq    uint64    `json:"first_seq"`
	LastSeq     uint64    `json:"last_seq"`
	Events      uint64    `json:"events"`
	FirstTime   time.Time `json:"first_time,omitzero"`
	LastTime    time.Time `json:"last_time,omitzero"`
	SnapshotSeq uint64    `json:"snapshot_seq,omitempty"`
	// Path and Bytes are zero for a store without a file. FreeBytes is how many of the Bytes a compaction would free.
	Path      string `json:"path,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
	FreeBytes int64  `json:"free_bytes,omitempty"`
	// Replaced is true if another program deleted or replaced the file at Path. The store then reads the file that it
	// opened, and appends nothing.
	Replaced bool `json:"replaced,omitempty"`
}
