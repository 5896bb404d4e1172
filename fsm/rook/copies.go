package rook

import (
	"fmt"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// wishCopies asks that each of the pools that a custom resource makes has as many copies as
// there are hosts for them, within the limits. It never asks for fewer.
func wishCopies(t *fsm.Thing, w *fsm.World) (wish, bool) {
	count, known := hosts(w)
	p := policyOf(w)
	if !known || !p.has(t.Subject) || purging(w) != "" {
		return wish{}, false
	}
	shall := p.copies(count)
	change := raise(of(t).Now(), func(string) int { return shall })
	if len(change.Numbers) == 0 {
		return wish{}, false
	}
	if shall > p.MinCopies {
		change.Hosts = shall
	}
	return wish{
		kind: journal.ActionRaiseCopies, change: change, why: fmt.Sprintf("%s, so it shall have %d copies, and has %s",
			running(count), shall, change.From()),
		field: "the copies of " + t.Kind + " " + t.Name, from: change.From(), to: change.To(),
	}, true
}

// purging returns the node that somebody asked to be removed, "" for none. Until it is gone
// nobody knows how many hosts there will be, and what is raised for it would not be lowered.
func purging(w *fsm.World) string {
	for _, rec := range w.Actions {
		if isPurge(rec) {
			return rec.Subject.Name
		}
	}
	return ""
}

// outdatedNumbers says why a number is not to be raised any more, or "".
func outdatedNumbers(of journal.Subject, change journal.RookChange, w *fsm.World) string {
	p := policyOf(w)
	switch node := purging(w); {
	case len(change.Numbers) == 0:
		return ""
	case node != "":
		return "node " + node + " is being purged"
	case !journal.HasRookPools(of):
		return ""
	case !p.has(of):
		return "it is not among the pools of the configuration any more"
	}
	for place, number := range change.Numbers {
		if most := max(p.MinCopies, p.MaxCopies); number.To > most {
			return fmt.Sprintf("%s shall be %d at most", journal.RookNumberName(place), most)
		}
	}
	return ""
}

// running says how many hosts have OSDs that run.
func running(hosts int) string {
	if hosts == 1 {
		return "1 host has OSDs that are up and in"
	}
	return words.Count(hosts, "host") + " have OSDs that are up and in"
}

// raise returns the change by which no number is less than it shall be; a place of which
// nothing shall be is left alone.
func raise(now journal.RookFacts, shall func(place string) int) journal.RookChange {
	change := journal.RookChange{}
	for place, has := range now.Numbers {
		if to := shall(place); has < to {
			if change.Numbers == nil {
				change.Numbers = map[string]journal.RookNumber{}
			}
			change.Numbers[place] = journal.RookNumber{From: has, To: to}
		}
	}
	return change
}
