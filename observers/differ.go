package observers

import (
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Differ detects changes: for each key it compares the present facts with the facts in the journal, and offers the
// differences until they are written. It is safe for concurrent use.
type Differ[V any] struct {
	recordsFor RecordFunc[V]
	sorted     bool
	// allowance limits how often a key is recorded.
	allowance Allowance

	mu      sync.Mutex
	changed func()
	facts   Facts[V]
	// recheckAt has the times at which to compare keys again even if nothing changes.
	recheckAt map[string]time.Time
	// complete is true once the journal has the result of a complete read.
	complete bool
}

// Facts has the facts that a Differ compares. Use it only inside [Differ.Change].
type Facts[V any] struct {
	// Now has the present facts.
	Now map[string]V
	// Recorded has the facts in the journal. A key has several entries only if one object replaced another, and an old
	// journal did not record the replacement.
	Recorded map[string][]V
	// Looked is true after a complete read.
	Looked  bool
	pending pending
}

// Touch marks a key as changed since the given time; zero means that the time is unknown.
func (f *Facts[V]) Touch(key string, since time.Time) { f.pending.add(key, change{at: since}) }

// Difference is a possible change of one key.
type Difference[V any] struct {
	Key string
	// Was has the facts in the journal. Now has the present facts, or nil if the object does not exist.
	Was []V
	Now *V
	// FirstLook is true if the first complete read after a start found the change.
	FirstLook bool
	// At is the time of the comparison.
	At time.Time
}

// Records has the drafts to record for a difference.
type Records[V any] struct {
	Drafts []journal.Draft
	// InJournal has the facts that the journal has after the drafts are written; it is empty if the object is gone. The
	// facts must not change afterwards.
	InJournal []V
	// Again is when to compare again even if nothing changes; zero means never.
	Again time.Time
}

// RecordFunc returns what to record for a difference. The Differ may call it several times for the same difference
// while the journal cannot be written.
type RecordFunc[V any] func(Difference[V]) Records[V]

// NewDiffer returns a Differ with the given facts in the journal. Two facts with the same key belong to two objects,
// one of which replaced the other.
func NewDiffer[V any](recordsFor RecordFunc[V], known iter.Seq2[string, V]) *Differ[V] {
	d := &Differ[V]{recordsFor: recordsFor, recheckAt: make(map[string]time.Time)}
	d.facts.Now, d.facts.Recorded = make(map[string]V), make(map[string][]V)
	if known != nil {
		for key, v := range known {
			d.facts.Recorded[key] = append(d.facts.Recorded[key], v)
		}
	}
	return d
}

// InOrder makes the Differ offer keys in sorted order. By default it offers them in the order of their changes.
func (d *Differ[V]) InOrder() *Differ[V] { d.sorted = true; return d }

// Report sets the function that the Differ calls when it may have something to record.
func (d *Differ[V]) Report(changed func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = changed
	d.report()
}

// Change calls f to change the facts. If there is something to record then, it calls the function that Report has set.
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

// Due returns what to record at the given time.
func (d *Differ[V]) Due(at time.Time) Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.markDue(at)
	d.allowance.Forget(at)
	taken := d.facts.pending.take()
	if d.sorted {
		slices.Sort(taken.order)
	}
	recorded := make(map[string][]V, len(taken.order))
	var said []string
	batch := Batch{Looked: d.facts.Looked}
	for _, key := range taken.order {
		records := d.recordsForKey(key, taken.changes[key], at)
		recorded[key] = records.InJournal
		d.compareAgain(key, records.Again)
		if len(records.Drafts) > 0 {
			said = append(said, key)
			batch.Drafts = append(batch.Drafts, records.Drafts...)
			batch.Since = Earlier(batch.Since, taken.changes[key].at)
		}
	}
	for _, again := range d.recheckAt {
		batch.Again = Earlier(batch.Again, again)
	}
	batch.Written = func() { d.written(recorded, said, at, batch.Looked) }
	batch.Refused = func() { d.refused(taken) }
	return batch
}

// recordsForKey returns what to record for a key. If the key was recorded too often, it returns nothing; the facts that
// the key has later are then recorded.
func (d *Differ[V]) recordsForKey(key string, how change, at time.Time) Records[V] {
	records := d.recordsFor(d.difference(key, how, at))
	if next := d.allowance.Next(key); len(records.Drafts) > 0 && at.Before(next) {
		return Records[V]{InJournal: d.facts.Recorded[key], Again: next}
	}
	return records
}

// markDue marks the keys that must be compared again by now.
func (d *Differ[V]) markDue(at time.Time) {
	for key, again := range d.recheckAt {
		if !at.Before(again) {
			d.facts.pending.add(key, change{})
		}
	}
}

func (d *Differ[V]) compareAgain(key string, at time.Time) {
	if at.IsZero() {
		delete(d.recheckAt, key)
		return
	}
	d.recheckAt[key] = at
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
