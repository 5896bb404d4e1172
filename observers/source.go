package observers

import (
	"context"
	"iter"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// A Source is where facts of one kind come from. [Watch] and [Poll] make one;
// another is a capability's own, made of a [Differ] and of feeds (see
// [Reporter.Feed]). All methods may be called at any time, side by side.
type Source interface {
	// Name says what is observed, in the plural: "certificates". It names the
	// source in the log, in metrics and in what people are told.
	Name() string
	// Run observes until ctx ends, and reports to the reporter that facts changed.
	Run(ctx context.Context, to *Reporter)
	// Due returns what the journal lacks at that time. The engine then calls one
	// of the batch's functions, before it asks again.
	Due(at time.Time) Batch
	// Look has the source look at once, without waiting for its next time: something
	// is known to have changed. It does not wait for the answer. What is watched
	// is looked at all the time, so that nothing happens then.
	Look()
}

// Essential is a source that may be one without which EKCO sees nothing. That it
// cannot be read is an outage, and its first look must be in the journal before
// anything is decided.
type Essential interface {
	Source
	Essential() bool
}

// A Follower is a source that decides by what the machines know where it looks.
type Follower interface {
	Source
	// Follow is called after each change of what the machines know. It must not
	// block, nor keep the things.
	Follow(things iter.Seq[Thing])
}

// Thing is what a machine knows of something, as far as a source may be told.
type Thing struct {
	Subject journal.Subject
	State   string
	// Data is what the machine keeps of it. A source asks it by an interface of its
	// own for what it wants to know, and does not change it.
	Data any
	// Newest is the event that last told of its facts or its end: when it is another,
	// they have changed.
	Newest uint64
	// Gone: its object no longer exists.
	Gone bool
}

// Batch is what a source has for the journal.
type Batch struct {
	// Drafts are what the journal lacks, in the order in which they tell the story.
	Drafts []journal.Draft
	// Since is when the oldest of them happened, zero when unknown.
	Since time.Time
	// Again is when something becomes due although nothing changes, zero for never.
	Again time.Time
	// Looked: a whole look was taken; it is part of this batch or an earlier one.
	Looked bool
	// Written takes note that the drafts are durable, Refused that none of them is and
	// that they must be offered again. Both must be set.
	Written, Refused func()
}
