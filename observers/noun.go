package observers

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Noun defines how to record the objects of a source. Equal, Observed and Gone must be set. The functions are called
// one at a time and must be quick.
type Noun[V any] struct {
	// Observed returns the event for an object whose facts differ from the journal. Gone returns the event for an
	// object that no longer exists.
	Observed func(key string, v V) journal.Draft
	Gone     func(key string, v V, reason string) journal.Draft
	// Equal reports whether a and b are equal for the journal.
	Equal func(a, b V) bool
	// UID distinguishes objects that replace one another under the same key. It is nil if objects are never replaced.
	UID func(V) string
	// HappenedAt returns when a change happened, according to the facts. before is the zero value for a new object. It
	// may be nil.
	HappenedAt func(before, now V) time.Time
	// Carry copies a history from the earlier facts of the same key. It may be nil.
	Carry func(before, now V) V
	// ChooseFacts returns the facts to record, and when to call it again even if nothing changes. was has the facts in the
	// journal, or is nil. ChooseFacts may be nil.
	ChooseFacts func(was *V, now V, at time.Time) (toRecord V, again time.Time)
	// Allowance limits how often events about one key are recorded. The limit includes the event that the object is
	// gone.
	Allowance Allowance
	// Known has the objects that exist according to the journal.
	Known iter.Seq2[string, V]
}

func (n *Noun[V]) differ() *Differ[V] {
	differ := NewDiffer(n.recordsFor, n.Known)
	differ.allowance = n.Allowance
	return differ
}

func (n *Noun[V]) uid(v V) string {
	if n.UID == nil {
		return ""
	}
	return n.UID(v)
}

func (n *Noun[V]) same(a, b V) bool {
	return n.uid(a) == n.uid(b) && n.Equal(a, b)
}

func (n *Noun[V]) carry(before, now V) V {
	if n.Carry == nil {
		return now
	}
	return n.Carry(before, now)
}

// see stores the present facts of an object.
func (n *Noun[V]) see(facts *Facts[V], key string, v V) {
	before, ok := facts.Now[key]
	if ok && n.same(before, v) {
		return
	}
	facts.Now[key] = n.carry(before, v)
	at := time.Now()
	if n.HappenedAt != nil {
		at = n.HappenedAt(before, v)
	}
	facts.Touch(key, at)
}

// lose records that the object no longer exists. It does nothing if another object now has the key.
func (n *Noun[V]) lose(facts *Facts[V], key string, v V) {
	if now, ok := facts.Now[key]; ok && n.uid(now) == n.uid(v) {
		delete(facts.Now, key)
		facts.Touch(key, time.Now())
	}
}

// replace stores the result of a complete read: exactly these objects exist.
func (n *Noun[V]) replace(facts *Facts[V], all map[string]V) {
	how := change{firstLook: !facts.Looked}
	facts.Looked = true
	for _, key := range slices.Sorted(maps.Keys(all)) {
		before, ok := facts.Now[key]
		if !ok || !n.same(before, all[key]) {
			facts.Now[key] = n.carry(before, all[key])
			facts.pending.add(key, how)
		}
	}
	maps.DeleteFunc(facts.Now, func(key string, _ V) bool { _, ok := all[key]; return !ok })
	for _, key := range slices.Sorted(maps.Keys(facts.Recorded)) {
		if _, ok := all[key]; !ok {
			facts.pending.add(key, how)
		}
	}
}

// recordsFor implements [RecordFunc].
func (n *Noun[V]) recordsFor(d Difference[V]) Records[V] {
	var records Records[V]
	if d.Now == nil {
		records.Drafts = n.gone(d, reasonOf(d))
		return records
	}
	var was *V
	var gone []V
	for i := range d.Was {
		if n.uid(d.Was[i]) == n.uid(*d.Now) {
			was = &d.Was[i]
		} else {
			gone = append(gone, d.Was[i])
		}
	}
	toRecord := *d.Now
	if n.ChooseFacts != nil {
		toRecord, records.Again = n.ChooseFacts(was, toRecord, d.At)
	}
	records.InJournal = []V{toRecord}
	d.Was = gone
	records.Drafts = n.gone(d, "replaced by uid "+n.uid(toRecord))
	if was == nil || !n.same(*was, toRecord) {
		records.Drafts = append(records.Drafts, n.Observed(d.Key, toRecord))
	}
	return records
}

func (n *Noun[V]) gone(d Difference[V], reason string) []journal.Draft {
	var drafts []journal.Draft
	for _, was := range d.Was {
		drafts = append(drafts, n.Gone(d.Key, was, reason))
	}
	return drafts
}

// reasonOf returns a text that explains how EKCO knows that an object no longer exists.
func reasonOf[V any](d Difference[V]) string {
	if d.FirstLook {
		return "absent at start"
	}
	return "deleted"
}
