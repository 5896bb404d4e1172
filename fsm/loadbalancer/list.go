package loadbalancer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// list is what the machine keeps of the ConfigMap that says which nodes have their load balancer in
// step. Who deletes it asks for everything to be written again.
type list struct {
	Facts journal.LoadBalancerListFacts `json:"facts"`
	// Tried is the list that EKCO wrote last, whatever came of it.
	Tried string `json:"tried,omitempty"`
	// Since is the event since which everything is to be written again.
	Since uint64 `json:"since,omitempty"`
	// Lost is why it is gone, if it is.
	Lost string `json:"lost,omitempty"`
}

// listOf returns nil for a load balancer, and for what is no thing of this machine.
func listOf(t *fsm.Thing) *list {
	if b, is := t.Data.(*balancer); is {
		return b.List
	}
	return nil
}

// KnownLists returns the facts of those that exist, as far as the journal knows, by name.
func KnownLists(s *fsm.State) map[string]journal.LoadBalancerListFacts {
	known := map[string]journal.LoadBalancerListFacts{}
	for _, t := range s.Things {
		if l := listOf(t); l != nil && t.FactsSeq != 0 && t.GoneSeq == 0 {
			known[t.Name] = l.Facts
		}
	}
	return known
}

// member is a node as the list has it.
func member(name string, facts journal.LoadBalancerFacts) string {
	return fmt.Sprintf("%s %t %s", name, facts.Primary, facts.Address)
}

// says is the list of members, as earlier versions of EKCO wrote it. They are sorted as texts: "a-1"
// comes before "a".
func says(members []string) string {
	slices.Sort(members)
	return strings.Join(members, ",")
}

// observed takes over what is known of it. One that EKCO has just made is no other one. If it says what EKCO
// has not written, another EKCO may have, and then it has written all nodes before.
func (l *list) observed(t *fsm.Thing, e journal.Event, facts json.RawMessage) error {
	var now journal.LoadBalancerListFacts
	if err := json.Unmarshal(facts, &now); err != nil {
		return fmt.Errorf("read the facts of %s: %w", t.Name, err)
	}
	if now.UID == "" || now != l.Facts && (now.Sum == "" || now.Sum != l.Tried) {
		l.Since = e.Seq
	}
	l.Facts, l.Lost = now, ""
	return nil
}

func (l *list) opened(rec *journal.ActionRecord) {
	if input, err := journal.InputOf[journal.LoadBalancerListInput](rec.Request); err == nil {
		l.Tried = journal.SumOfLoadBalancers(input.List)
	}
}

// ended takes over what the action has made of it.
func (l *list) ended(rec *journal.ActionRecord) {
	var made journal.LoadBalancerListFacts
	if outputs := rec.Steps[journal.StepNoteLoadBalancers].Outputs; len(outputs) > 0 && json.Unmarshal(outputs, &made) == nil {
		l.Facts = made
	}
}

// said reports whether it says that.
func (l *list) said(says string) bool {
	return l.Facts.UID != "" && l.Facts.Sum == journal.SumOfLoadBalancers(says)
}

// wants has it say which nodes there are once all are in step that are ready and not paused.
func (l *list) wants(t *fsm.Thing, w *fsm.World, s *sum, want func(fsm.Want)) {
	if t != s.list || !s.settled(w) || l.said(s.says) {
		return
	}
	due, may := t.Again(journal.ActionNoteLoadBalancers, w.Policy, backoff)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionNoteLoadBalancers, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: "list", Field: "the content of ConfigMap " + t.Name, From: l.Facts.Sum, To: journal.SumOfLoadBalancers(s.says),
	}})
}

func (l *list) request(s *sum) journal.ActionRequested {
	return journal.ActionRequested{
		Reason: "the load balancers of all nodes that are ready and not paused are up to date",
		Input:  journal.LoadBalancerListInput{UID: l.Facts.UID, List: s.says},
	}
}

func (l *list) obsolete(t *fsm.Thing, rec *journal.ActionRecord) string {
	input, err := journal.InputOf[journal.LoadBalancerListInput](rec.Request)
	switch {
	case err != nil, t.Newest() == 0:
		return ""
	case t.GoneSeq != 0:
		return "EKCO no longer manages it: " + l.Lost
	case len(rec.Steps) == 0 && l.Facts.UID != input.UID:
		return "another program deleted or created it"
	}
	return ""
}

// outdated says that it shall say something else by now, unless it is being written.
func (l *list) outdated(rec *journal.ActionRecord, w *fsm.World) string {
	s := sumOf(w)
	input, err := journal.InputOf[journal.LoadBalancerListInput](rec.Request)
	switch {
	case err != nil, s.list == nil, len(rec.Steps) > 0 && rec.Stalled == nil:
		return ""
	case !s.settled(w):
		return "the load balancer of a node is out of date"
	case input.List != s.says:
		return "the nodes have changed"
	}
	return ""
}

// Details implements [fsm.Machine].
func (machine) Details(t *fsm.Thing, _ *fsm.World) []string {
	b := of(t)
	if b == nil || b.Proved == nil {
		return nil
	}
	runs := "without HAProxy"
	if b.Proved.Image != "" {
		runs = "with " + b.Proved.Image
	}
	return []string{fmt.Sprintf("forwards to %s, %s, last checked at %s", strings.Join(b.Proved.Input.Primaries, ", "), runs, fsm.Stamp(looked(t)))}
}
