package observers

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Noun says how a source tells of the things that it sees. Equal, Observed and
// Gone must be set. The functions are called one at a time and must be quick.
type Noun[V any] struct {
	// Observed and Gone are the events of a thing that differs from what the
	// journal has of it, and of one that no longer exists.
	Observed func(key string, v V) journal.Draft
	Gone     func(key string, v V, reason string) journal.Draft
	// Equal reports whether what the journal is told of both would be the same.
	Equal func(a, b V) bool
	// UID tells apart things that replace one another under one key; nil where none
	// does.
	UID func(V) string
	// HappenedAt, when set, dates a change by what the outside says of it. before is
	// the zero value of a thing that is new.
	HappenedAt func(before, now V) time.Time
	// Carry, when set, hands on to what is seen what is to be remembered of what was
	// seen before under its key: a history.
	Carry func(before, now V) V
	// Judge, when set, returns what the journal is to be told of what is seen, and
	// when that is to be judged again although nothing changes. was is what the
	// journal has of the same thing, nil for nothing.
	Judge func(was *V, now V, at time.Time) (told V, again time.Time)
	// Allowance bounds how often the journal is told of one key, also of its end.
	Allowance Allowance
	// Known is what the journal says exists.
	Known iter.Seq2[string, V]
}

func (n *Noun[V]) differ() *Differ[V] {
	differ := NewDiffer(n.tell, n.Known)
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

// see takes a thing as it is now.
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

// lose takes the news that the thing no longer exists. It says nothing of another
// one that has its key by now.
func (n *Noun[V]) lose(facts *Facts[V], key string, v V) {
	if now, ok := facts.Now[key]; ok && n.uid(now) == n.uid(v) {
		delete(facts.Now, key)
		facts.Touch(key, time.Now())
	}
}

// replace takes a whole look: exactly these things exist.
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

// tell implements [Tell].
func (n *Noun[V]) tell(d Difference[V]) Telling[V] {
	var telling Telling[V]
	if d.Now == nil {
		telling.Drafts = n.gone(d, reasonOf(d))
		return telling
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
	told := *d.Now
	if n.Judge != nil {
		told, telling.Again = n.Judge(was, told, d.At)
	}
	telling.Told = []V{told}
	d.Was = gone
	telling.Drafts = n.gone(d, "replaced by uid "+n.uid(told))
	if was == nil || !n.same(*was, told) {
		telling.Drafts = append(telling.Drafts, n.Observed(d.Key, told))
	}
	return telling
}

func (n *Noun[V]) gone(d Difference[V], reason string) []journal.Draft {
	var drafts []journal.Draft
	for _, was := range d.Was {
		drafts = append(drafts, n.Gone(d.Key, was, reason))
	}
	return drafts
}

// reasonOf says how EKCO came to know that something no longer exists.
func reasonOf[V any](d Difference[V]) string {
	if d.FirstLook {
		return "absent at start"
	}
	return "deleted"
}
