package loadbalancer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// list is the machine's data about the ConfigMap that lists the nodes when all load balancers are up to date. An
// administrator or installer deletes the ConfigMap to make EKCO write all load balancers again.
type list struct {
	Facts journal.LoadBalancerListFacts `json:"facts"`
	// Tried is the checksum of the content that EKCO last tried to write.
	Tried string `json:"tried,omitempty"`
	// Since is the last event that requires EKCO to write all load balancers again; zero for none.
	Since uint64 `json:"since,omitempty"`
	// Lost says why EKCO no longer manages the ConfigMap, or is "".
	Lost string `json:"lost,omitempty"`
}

// listOf returns the data of the thing for the ConfigMap. It returns nil for a load balancer and for another machine's
// thing.
func listOf(t *fsm.Thing) *list {
	if b, is := t.Data.(*balancer); is {
		return b.List
	}
	return nil
}

// KnownLists returns the facts about the ConfigMaps that exist according to the journal, by name.
func KnownLists(s *fsm.State) map[string]journal.LoadBalancerListFacts {
	known := map[string]journal.LoadBalancerListFacts{}
	for _, t := range s.Things {
		if l := listOf(t); l != nil && t.FactsSeq != 0 && t.GoneSeq == 0 {
			known[t.Name] = l.Facts
		}
	}
	return known
}

// listEntry returns a node's entry in the list.
func listEntry(name string, facts journal.LoadBalancerFacts) string {
	return fmt.Sprintf("%s %t %s", name, facts.Primary, facts.Address)
}

// formatList returns the content of the ConfigMap in the format of earlier versions of EKCO: the entries, sorted as
// strings.
func formatList(members []string) string {
	slices.Sort(members)
	return strings.Join(members, ",")
}

// observed stores new facts about the ConfigMap. If another program deleted the ConfigMap or changed its content, all
// load balancers must be written again: another EKCO may have written them in between.
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

// ended stores the facts after the action's write.
func (l *list) ended(rec *journal.ActionRecord) {
	var made journal.LoadBalancerListFacts
	if outputs := rec.Steps[journal.StepNoteLoadBalancers].Outputs; len(outputs) > 0 && json.Unmarshal(outputs, &made) == nil {
		l.Facts = made
	}
}

// hasContent reports whether the ConfigMap exists and has this content.
func (l *list) hasContent(content string) bool {
	return l.Facts.UID != "" && l.Facts.Sum == journal.SumOfLoadBalancers(content)
}

// wantsWrite calls want with a write of the ConfigMap, if the ConfigMap is out of date and all load balancers are up to
// date. Nodes that are paused or not ready do not count.
func (l *list) wantsWrite(t *fsm.Thing, w *fsm.World, s *sum, want func(fsm.Want)) {
	if t != s.list || !s.isSettled(w) || l.hasContent(s.wantedList) {
		return
	}
	due, may := t.RepeatDue(journal.ActionNoteLoadBalancers, w.Policy, backoff)
	if !may {
		return
	}
	want(fsm.Want{Kind: journal.ActionNoteLoadBalancers, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: "list", Field: "the content of ConfigMap " + t.Name, From: l.Facts.Sum, To: journal.SumOfLoadBalancers(s.wantedList),
	}})
}

func (l *list) request(s *sum) journal.ActionRequested {
	return journal.ActionRequested{
		Reason: "the load balancers of all nodes that are ready and not paused are up to date",
		Input:  journal.LoadBalancerListInput{UID: l.Facts.UID, List: s.wantedList},
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

// outdated returns why the requested content is out of date, or "". It returns "" while a step may be writing the
// content.
func (l *list) outdated(rec *journal.ActionRecord, w *fsm.World) string {
	s := sumOf(w)
	input, err := journal.InputOf[journal.LoadBalancerListInput](rec.Request)
	switch {
	case err != nil, s.list == nil, len(rec.Steps) > 0 && rec.Stalled == nil:
		return ""
	case !s.isSettled(w):
		return "the load balancer of a node is out of date"
	case input.List != s.wantedList:
		return "the nodes have changed"
	}
	return ""
}

func (machine) Details(t *fsm.Thing, _ *fsm.World) []string {
	b := of(t)
	if b == nil || b.Proved == nil {
		return nil
	}
	runs := "without HAProxy"
	if b.Proved.Image != "" {
		runs = "with " + b.Proved.Image
	}
	return []string{fmt.Sprintf("forwards to %s, %s, last checked at %s", strings.Join(b.Proved.Input.Primaries, ", "), runs, fsm.Stamp(lastCheckedAt(t)))}
}
