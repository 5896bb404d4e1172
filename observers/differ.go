package observers

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Differ detects changes: it compares present facts with those in the journal, key by key, and offers the differences
// until they are written. It is safe for concurrent use.
type Differ[V any] struct {
	tell   Tell[V]
	sorted bool
	// allowance limits how often a key is recorded.
	allowance Allowance

	mu      sync.Mutex
	changed func()
	facts   Facts[V]
	// again is when to compare a key again although nothing changes.
	again map[string]time.Time
	// complete is set once the journal has a complete read.
	complete bool
}

// Facts are what a Differ compares. Use them only in [Differ.Change].
type Facts[V any] struct {
	// Now has the present facts.
	Now map[string]V
	// Recorded has the facts in the journal. A key has several only if one replaced the other and an old journal did
	// not record that.
	Recorded map[string][]V
	// Looked is set after a complete read.
	Looked  bool
	pending pending
}

// Touch marks a key as changed since that time; zero if the time is unknown.
func (f *Facts[V]) Touch(key string, since time.Time) { f.pending.add(key, change{at: since}) }

// Difference is a possible change of one key.
type Difference[V any] struct {
	Key string
	// Was has the facts in the journal, Now the present ones; nil if it does not exist.
	Was []V
	Now *V
	// FirstLook is set if the first complete read after a start found it.
	FirstLook bool
	// At is the time of the comparison.
	At time.Time
}

// Telling is what to record for a difference.
type Telling[V any] struct {
	Drafts []journal.Draft
	// Told has the facts in the journal after the drafts are written; empty if there are none. They must not change
	// afterwards.
	Told []V
	// Again is when to compare again although nothing changes, zero for never.
	Again time.Time
}

// Tell returns what to record. It can be called several times for the same difference, while the journal cannot be
// written.
type Tell[V any] func(Difference[V]) Telling[V]

// NewDiffer returns a Differ with the facts in the journal. Two facts with the same key are two things, of which one
// replaced the other.
func NewDiffer[V any](tell Tell[V], known iter.Seq2[string, V]) *Differ[V] {
	d := &Differ[V]{tell: tell, again: make(map[string]time.Time)}
	d.facts.Now, d.facts.Recorded = make(map[string]V), make(map[string][]V)
	if known != nil {
		for key, v := range known {
			d.facts.Recorded[key] = append(d.facts.Recorded[key], v)
		}
	}
	return d
}

// InOrder makes the Differ offer keys in their order, and not in that of their changes.
func (d *Differ[V]) InOrder() *Differ[V] { d.sorted = true; return d }

// Report sets the function to call when something may be due.
func (d *Differ[V]) Report(changed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = changed
	d.report()
}

// Change changes the facts, and calls that function if something may be due.
func (d *Differ[V]) Change(f func(*Facts[V])) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.facts)
	d.report()
}

func (d *Differ[V]) report() {
	mayBeDue := d.facts.pending.any() || d.facts.Looked && !d.complete
	if mayBeDue && d.changed != nil {
		d.changed()
	}
}

// Due returns what to record at that time.
func (d *Differ[V]) Due(at time.Time) Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ripen(at)
	d.allowance.Forget(at)
	taken := d.facts.pending.take()
	if d.sorted {
		slices.Sort(taken.order)
	}
	recorded := make(map[string][]V, len(taken.order))
	var said []string
	batch := Batch{Looked: d.facts.Looked}
	for _, key := range taken.order {
		telling := d.telling(key, taken.changes[key], at)
		recorded[key] = telling.Told
		d.compareAgain(key, telling.Again)
		if len(telling.Drafts) > 0 {
			said = append(said, key)
			batch.Drafts = append(batch.Drafts, telling.Drafts...)
			batch.Since = Earlier(batch.Since, taken.changes[key].at)
		}
	}
	for _, again := range d.again {
		batch.Again = Earlier(batch.Again, again)
	}
	batch.Written = func() { d.written(recorded, said, at, batch.Looked) }
	batch.Refused = func() { d.refused(taken) }
	return batch
}

// telling returns what to record for a key: nothing if it was recorded too often. Then it is recorded later, with the
// facts of that time.
func (d *Differ[V]) telling(key string, how change, at time.Time) Telling[V] {
	telling := d.tell(d.difference(key, how, at))
	if next := d.allowance.Next(key); len(telling.Drafts) > 0 && at.Before(next) {
		return Telling[V]{Told: d.facts.Recorded[key], Again: next}
	}
	return telling
}

// ripen marks the keys that are to be compared again by now.
func (d *Differ[V]) ripen(at time.Time) {
	for key, again := range d.again {
		if !at.Before(again) {
			d.facts.pending.add(key, change{})
		}
	}
}

func (d *Differ[V]) compareAgain(key string, at time.Time) {
	if at.IsZero() {
		delete(d.again, key)
		return
	}
	d.again[key] = at
}

func (d *Differ[V]) difference(key string, how change, at time.Time) Difference[V] {
	diff := Difference[V]{Key: key, Was: d.facts.Recorded[key], FirstLook: how.firstLook, At: at}
	if now, ok := d.facts.Now[key]; ok {
		diff.Now = &now
	}
	return diff
}

func (d *Differ[V]) written(recorded map[string][]V, said []string, at time.Time, looked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.complete = d.complete || looked
	for _, key := range said {
		d.allowance.Take(key, at)
	}
	for key, now := range recorded {
		if len(now) > 0 {
			d.facts.Recorded[key] = now
		} else {
			delete(d.facts.Recorded, key)
		}
	}
}

func (d *Differ[V]) refused(taken pending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts.pending.restore(taken)
}
