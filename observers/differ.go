package observers

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Differ compares, key by key, what is with what the journal has of it, and
// offers the difference until that is written. It is safe for concurrent use.
type Differ[V any] struct {
	tell   Tell[V]
	sorted bool
	// allowance bounds how often the journal is told of a key.
	allowance Allowance

	mu      sync.Mutex
	changed func()
	facts   Facts[V]
	// again is when a key is due again although nothing changes.
	again map[string]time.Time
	// complete: the journal has a whole look.
	complete bool
}

// Facts are what a Differ compares. They may be used only while it is locked,
// that is in [Differ.Change].
type Facts[V any] struct {
	// Now is what is.
	Now map[string]V
	// Recorded is what the journal has. There is more than one of a key only when
	// one of them replaced the other and an old journal does not say so.
	Recorded map[string][]V
	// Looked: a whole look was taken.
	Looked  bool
	pending pending
}

// Touch says that the facts of a key may differ from the journal's since then;
// zero is for a time that nobody knows.
func (f *Facts[V]) Touch(key string, since time.Time) { f.pending.add(key, change{at: since}) }

// Difference is what may differ of one key.
type Difference[V any] struct {
	Key string
	// Was is what the journal has, Now what is; nil when it does not exist.
	Was []V
	Now *V
	// FirstLook: it was found by the first whole look after a start.
	FirstLook bool
	// At is the time of the comparison.
	At time.Time
}

// Telling is what the journal is told of a difference.
type Telling[V any] struct {
	Drafts []journal.Draft
	// Told is what the journal has once they are written; empty for nothing. It
	// must not change afterwards.
	Told []V
	// Again is when to compare again although nothing changes, zero for never.
	Again time.Time
}

// Tell returns what brings the journal up to date. It can be called more than
// once for the same difference, while the journal cannot be written.
type Tell[V any] func(Difference[V]) Telling[V]

// NewDiffer returns a Differ of what the journal is known to have. A key that is
// known twice is two things, of which one replaced the other.
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

// InOrder has the Differ offer keys in their order, not in that of their changes.
func (d *Differ[V]) InOrder() *Differ[V] { d.sorted = true; return d }

// Report says whom to tell that something may be due.
func (d *Differ[V]) Report(changed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = changed
	d.report()
}

// Change changes the facts, and reports when something may be due by that.
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

// Due returns what the journal lacks at that time.
func (d *Differ[V]) Due(at time.Time) Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ripen(at)
	d.allowance.Forget(at)
	taken := d.facts.pending.take()
	if d.sorted {
		slices.Sort(taken.order)
	}
	told := make(map[string][]V, len(taken.order))
	var said []string
	batch := Batch{Looked: d.facts.Looked}
	for _, key := range taken.order {
		telling := d.telling(key, taken.changes[key], at)
		told[key] = telling.Told
		d.compareAgain(key, telling.Again)
		if len(telling.Drafts) > 0 {
			said = append(said, key)
			batch.Drafts = append(batch.Drafts, telling.Drafts...)
			batch.Since = oldest(batch.Since, taken.changes[key].at)
		}
	}
	for _, again := range d.again {
		batch.Again = oldest(batch.Again, again)
	}
	batch.Written = func() { d.written(told, said, at, batch.Looked) }
	batch.Refused = func() { d.refused(taken) }
	return batch
}

// telling is what the journal is told of a key now: nothing while it was told too often. It
// is told then of what is by that time.
func (d *Differ[V]) telling(key string, how change, at time.Time) Telling[V] {
	telling := d.tell(d.difference(key, how, at))
	if next := d.allowance.Next(key); len(telling.Drafts) > 0 && at.Before(next) {
		return Telling[V]{Told: d.facts.Recorded[key], Again: next}
	}
	return telling
}

// ripen makes due what was to be compared again by now.
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

func (d *Differ[V]) written(told map[string][]V, said []string, at time.Time, looked bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.complete = d.complete || looked
	for _, key := range said {
		d.allowance.Take(key, at)
	}
	for key, now := range told {
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
