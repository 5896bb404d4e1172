package observers

import (
	"context"
	"iter"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// A Source provides facts of one kind. [Watch] and [Poll] return sources. A capability can also build its own from a
// [Differ] and feeds (see [Reporter.Feed]). All methods must be safe for concurrent use.
type Source interface {
	// Name returns a plural noun, such as "certificates". It identifies the source in the log, in metrics and in
	// messages.
	Name() string
	// Run observes until ctx ends, and tells the reporter when facts have changed.
	Run(ctx context.Context, to *Reporter)
	// Due returns what to record at the given time. Before the engine calls Due again, it calls Written or Refused of
	// the batch.
	Due(at time.Time) Batch
	// Look makes the source read at once, because something has changed. It does not wait for the read. A watching
	// source does nothing.
	Look()
}

// Essential is a source that says whether EKCO can work without it. It is an outage if an essential source cannot be
// read. Its first read must be in the journal before EKCO decides anything.
type Essential interface {
	Source
	Essential() bool
}

// A ThingFollower is a source that uses the state of machines to choose what to read.
type ThingFollower interface {
	Source
	// Follow is called after each change of the machines' state. It must not block, and must not keep things after it
	// returns.
	Follow(things iter.Seq[Thing])
}

// Thing is the part of a machine's state that sources can use.
type Thing struct {
	Subject journal.Subject
	State   string
	// Data is the state that the machine itself defines. A source reads it through an interface, and must not change
	// it.
	Data any
	// Newest is the number of the event that last changed the facts of the thing or ended it. A source compares the number
	// to notice such an event.
	Newest uint64
	// Gone is true if the object no longer exists.
	Gone bool
}

// Batch is what a source wants to record.
type Batch struct {
	// Drafts are in chronological order.
	Drafts []journal.Draft
	// Since is when the oldest change in Drafts happened; zero if unknown.
	Since time.Time
	// Again is when to call Due even if nothing changes; zero means never.
	Again time.Time
	// Looked is true if this batch or an earlier one includes a complete read.
	Looked bool
	// Written must be called if all drafts are on disk. Refused must be called if none is, so that the source offers them
	// again. Both must be set.
	Written, Refused func()
}
