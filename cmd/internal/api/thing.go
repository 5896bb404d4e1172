package api

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// ThingRequest selects the things to explain.
type ThingRequest struct {
	// Kind is the machine or kind of the things, in upper or lower case. Name is their name.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Action selects the thing of that open action instead, if it is set.
	Action string `json:"action,omitempty"`
}

// ThingExplanation explains the state of a thing, and why EKCO does not act on it.
type ThingExplanation struct {
	Now     time.Time       `json:"now"`
	Machine string          `json:"machine"`
	Subject journal.Subject `json:"subject"`
	State   journal.State   `json:"state"`
	Since   time.Time       `json:"since"`
	// FactsSeq is the number of the event with the last facts. GoneSeq is the number of the event that says that the
	// thing is gone. Each is 0 without such an event.
	FactsSeq uint64 `json:"facts_seq"`
	GoneSeq  uint64 `json:"gone_seq"`
	// Actions has the thing's open actions. Refusals has the reasons why EKCO starts no others.
	Actions  []journal.ActionRecord `json:"actions"`
	Refusals []fsm.Refusal          `json:"refusals"`
	// Contests has the changes that another program keeps undoing.
	Contests []ContestStatus `json:"contests"`
	// Last has the end of the last action of each kind that the machine remembers.
	Last map[journal.ActionKind]fsm.Ending `json:"last"`
	// Next lists the actions that EKCO will begin automatically, and what prevents them. It is empty if no operator
	// runs.
	Next []fsm.Upcoming `json:"next"`
}

// Foresee sets Next of each thing.
func Foresee(things []ThingExplanation, s *fsm.State, p fsm.Policy) {
	for i := range things {
		things[i].Next = append([]fsm.Upcoming{}, fsm.ForeseeThing(s, p, things[i].Now, things[i].Subject)...)
	}
}

// ContestStatus describes a change that EKCO does not repeat for a while.
type ContestStatus struct {
	// Key identifies the change. Action is the last action that made it, at the time Last.
	Key    string    `json:"key"`
	Action string    `json:"action"`
	Last   time.Time `json:"last"`
	// Until is when EKCO may repeat the change.
	Until time.Time `json:"until"`
}

// ExplainThings explains the selected things. The most recently seen thing comes first; several things can have the
// same name and different UIDs.
func ExplainThings(s *fsm.State, now time.Time, request ThingRequest) ([]ThingExplanation, error) {
	meant := func(t *fsm.Thing) bool { return t.Name == request.Name && isOf(t, request.Kind) }
	if request.Action != "" {
		record := s.Actions[request.Action]
		if record == nil {
			return nil, noAction(s, request.Action)
		}
		request.Kind, request.Name = record.Subject.Kind, record.Subject.Name
		meant = func(t *fsm.Thing) bool { return fsm.Key(t.Subject) == fsm.Key(record.Subject) }
	}
	var found []ThingExplanation
	for _, t := range s.Things {
		if meant(t) {
			found = append(found, explainThing(s, now, t))
		}
	}
	if len(found) == 0 {
		return nil, unknownThing(s, request)
	}
	slices.SortFunc(found, func(a, b ThingExplanation) int {
		return cmp.Or(cmp.Compare(b.FactsSeq, a.FactsSeq), cmp.Compare(a.Subject.UID, b.Subject.UID))
	})
	return found, nil
}

func isOf(t *fsm.Thing, kind string) bool {
	return strings.EqualFold(kind, t.Machine()) || strings.EqualFold(kind, t.Kind)
}

func explainThing(s *fsm.State, now time.Time, t *fsm.Thing) ThingExplanation {
	explained := ThingExplanation{
		Now: now, Machine: t.Machine(), Subject: t.Subject, State: t.State, Since: t.Since, FactsSeq: t.FactsSeq, GoneSeq: t.GoneSeq,
		Actions: []journal.ActionRecord{}, Refusals: []fsm.Refusal{}, Next: []fsm.Upcoming{},
	}
	for _, record := range withoutRunnerDetails(s.OpenActions()) {
		if fsm.Key(record.Subject) == fsm.Key(t.Subject) {
			explained.Actions = append(explained.Actions, record)
		}
	}
	for _, refusal := range s.Refusals {
		if concernsThing(s, refusal, t) {
			explained.Refusals = append(explained.Refusals, refusal)
		}
	}
	for key, contest := range t.Contests {
		if until, contested := contest.Until(now); contested {
			explained.Contests = append(explained.Contests, ContestStatus{Key: key, Action: contest.Action, Last: contest.Last, Until: until})
		}
	}
	slices.SortFunc(explained.Contests, func(a, b ContestStatus) int { return cmp.Compare(a.Key, b.Key) })
	for kind, ending := range t.Last {
		if explained.Last == nil {
			explained.Last = map[journal.ActionKind]fsm.Ending{}
		}
		explained.Last[kind] = *ending
	}
	return explained
}

// concernsThing reports whether a refusal prevents EKCO from acting on the thing.
func concernsThing(s *fsm.State, refusal fsm.Refusal, t *fsm.Thing) bool {
	if refusal.Subject != journal.ClusterSubject {
		return fsm.Key(refusal.Subject) == fsm.Key(t.Subject)
	}
	kind := s.Kind(refusal.Kind)
	return kind != nil && kind.Machine == t.Machine() && t.GoneSeq == 0
}

// unknownThing returns the error for an unknown name.
func unknownThing(s *fsm.State, request ThingRequest) error {
	near := fsm.DidYouMean(fsm.Near(request.Kind+"/"+request.Name, thingNames(s)))
	return fmt.Errorf("EKCO knows no %s %s%s%w", request.Kind, request.Name, near, Hidden(ErrNotFound))
}

// thingNames yields the names of all things without duplicates.
func thingNames(s *fsm.State) iter.Seq[string] {
	names := map[string]bool{}
	for _, t := range s.Things {
		names[t.Machine()+"/"+t.Name] = true
	}
	return maps.Keys(names)
}

func noAction(s *fsm.State, id string) error {
	near := fsm.DidYouMean(fsm.Near(id, maps.Keys(s.Actions)))
	return fmt.Errorf("explain %q: %w%s%w", id, fsm.ErrNoSuchAction, near, Hidden(ErrNotFound))
}
