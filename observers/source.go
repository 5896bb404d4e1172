package observers

import (
	"context"
	"iter"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// A Source provides facts of one kind. [Watch] and [Poll] make one; a capability can also build its own from a
// [Differ] and feeds (see [Reporter.Feed]). All methods must be safe for concurrent use.
type Source interface {
	// Name says what is observed, in the plural: "certificates". It names the source in the log, in metrics and in
	// messages.
	Name() string
	// Run observes until ctx ends, and reports changes of facts to the reporter.
	Run(ctx context.Context, to *Reporter)
	// Due returns what to record at that time. The engine then calls one of the batch's functions, before it calls
	// Due again.
	Due(at time.Time) Batch
	// Look makes the source read immediately, because something has changed. It does not wait for the answer. A
	// watching source does nothing then.
	Look()
}

// Essential is a source that EKCO may need to work. A failure to read it is an outage, and its first read must be in
// the journal before EKCO decides anything.
type Essential interface {
	Source
	Essential() bool
}

// A Follower is a source that needs what the machines know to choose what to read.
type Follower interface {
	Source
	// Follow is called after each change of the machines' state. It must not block, nor keep the things.
	Follow(things iter.Seq[Thing])
}

// Thing is the part of a machine's state for sources.
type Thing struct {
	Subject journal.Subject
	State   string
	// Data is the machine's own state. A source reads it through an interface, and does not change it.
	Data any
	// Newest is the event with its last facts or its end: if it differs, they have changed.
	Newest uint64
	// Gone: its object no longer exists.
	Gone bool
}

// Batch is what a source has to record.
type Batch struct {
	// Drafts are in chronological order.
	Drafts []journal.Draft
	// Since is when the oldest of them happened, zero if unknown.
	Since time.Time
	// Again is when something becomes due although nothing changes, zero for never.
	Again time.Time
	// Looked: there was a complete read; it is in this batch or an earlier one.
	Looked bool
	// Written must be called if the drafts are durable, Refused if none of them is and they must be offered again.
	// Both must be set.
	Written, Refused func()
}
