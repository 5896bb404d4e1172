package api

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// StatusOf returns the status of a folded state. The caller must add what the state does not have: whether an operator
// runs and sees the cluster, the journal's size, and what is absent. p is the policy of the ring, or zero.
func StatusOf(s *fsm.State, p fsm.Policy, now time.Time) Status {
	status := Status{
		Now: now, API: s.API, Clock: clockStatus(s.Clock), Actions: withoutRunnerDetails(s.OpenActions()),
		Operator: OperatorStatus{OperatorState: s.Operator},
		Journal: JournalStatus{
			SafeMode: s.Journal.Salvaged, Outdated: s.Journal.Outdated, SafeModeSince: safeModeSince(s.Journal), LostFrom: s.Journal.LostFrom,
			Adopted: s.Journal.Adopted, AdoptedAt: s.Journal.AdoptedAt, Replaced: s.Journal.Replaced, ReplacedAt: s.Journal.ReplacedAt,
		},
		Refusals: append([]fsm.Refusal{}, s.Refusals...),
		Pauses:   make(map[string]fsm.PauseState, len(s.Pauses)),
		Defects:  append([]string{}, s.Problems...),
		Nodes:    []NodeStatus{}, Next: []fsm.Upcoming{}, Absent: []string{},
	}
	for key, pause := range s.Pauses {
		status.Pauses[strings.TrimPrefix(key, nodePause)] = pause
	}
	for node := range fsmnode.All(s) {
		status.Nodes = append(status.Nodes, nodeStatus(node))
	}
	slices.SortFunc(status.Nodes, func(a, b NodeStatus) int {
		return strings.Compare(a.Name+"\x00"+a.UID, b.Name+"\x00"+b.UID)
	})
	status.Things = thingsOf(fsm.NewWorld(s, p, now))
	return status
}

// safeModeSince returns when safe mode began, or zero if EKCO is not in safe mode.
func safeModeSince(j fsm.JournalState) time.Time {
	if j.SalvagedAt.IsZero() || !j.OutdatedAt.IsZero() && j.OutdatedAt.Before(j.SalvagedAt) {
		return j.OutdatedAt
	}
	return j.SalvagedAt
}

// nodePause is the prefix of nodes' keys in the state's pauses. A status omits it.
const nodePause = fsmnode.Machine + "/"

// thingsOf returns all things except nodes, sorted by machine and name.
func thingsOf(w *fsm.World) []ThingStatus {
	things := []ThingStatus{}
	for _, t := range w.Things {
		if t.Machine() != fsmnode.Machine {
			reason, advice := t.NeedsPerson(w.Now)
			things = append(things, ThingStatus{
				Machine: t.Machine(), Name: t.Name, UID: t.UID, State: t.State, Since: t.Since, Gone: t.GoneSeq != 0, Normal: t.IsNormal(w.Now) && len(w.Open(t)) == 0,
				NeedsPerson: reason, Advice: advice, Details: t.Details(w), Facts: factsOf(t),
			})
		}
	}
	slices.SortFunc(things, func(a, b ThingStatus) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return things
}

// factsOf returns the facts for programs, or nil if the machine has none.
func factsOf(t *fsm.Thing) json.RawMessage {
	facts := t.Facts()
	if facts == nil {
		return nil
	}
	encoded, err := json.Marshal(facts)
	if err != nil {
		return nil // a status without facts is better than no status
	}
	return encoded
}

// LastSeen returns the last time at which the state in the journal was certainly up to date.
func LastSeen(s *fsm.State) time.Time {
	switch {
	case !s.API.LostAt.IsZero():
		return s.API.LostAt
	case s.Operator.StoppedAt.After(s.Operator.StartedAt):
		return s.Operator.StoppedAt
	}
	return s.Time
}

func clockStatus(c fsm.ClockState) ClockStatus {
	status := ClockStatus{JumpedAt: c.JumpedAt, Jump: c.Jump}
	if c.Wrong() {
		status.APIAhead = *c.Skew
	}
	return status
}

func nodeStatus(node *fsmnode.Node) NodeStatus {
	since, _ := node.Facts.Unreachable()
	status := NodeStatus{
		Name: node.Name, UID: node.UID, Role: node.Facts.Role, State: node.State, Since: node.Since,
		Ready: node.GoneAt.IsZero() && !slices.ContainsFunc(node.Facts.Taints, isNoCordon), Excluded: node.Facts.Excluded,
		Cordoned:        node.GoneAt.IsZero() && slices.ContainsFunc(node.Facts.Taints, isCordon),
		TerminatingPods: len(node.Pods), UnreachableSince: since, InternalIP: node.Facts.InternalIP,
	}
	if node.GoneAt.IsZero() {
		status.Taints = slices.Clone(node.Facts.Taints)
	}
	if status.Flapping = node.Facts.Flapping; status.Flapping {
		status.UnreachableSince = time.Time{}
	}
	status.Normal = node.State == fsmnode.Healthy && len(status.Taints) == 0 && !status.Flapping && !status.Excluded && status.TerminatingPods == 0
	return status
}

func isCordon(t journal.Taint) bool   { return t.Key == journal.TaintUnschedulable }
func isNoCordon(t journal.Taint) bool { return !isCordon(t) }

// EventsOf reads events from a store; see [Backend.Events].
func EventsOf(ctx context.Context, store journal.Store, query journal.Query, follow bool) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		last := query.After
		for event, err := range store.Read(ctx, query) {
			if !yield(event, err) || err != nil {
				return
			}
			last = max(last, event.Seq)
		}
		if !follow {
			return
		}
		live := query
		live.Limit, live.After = 0, last
		for event, err := range store.Follow(ctx, last) {
			if err != nil {
				yield(event, err)
				return
			}
			if live.Matches(event) && !yield(event, nil) {
				return
			}
		}
	}
}

// withoutRunnerDetails removes details of open actions that only the runner needs. The history still has them.
func withoutRunnerDetails(open []journal.ActionRecord) []journal.ActionRecord {
	for i := range open {
		open[i].Warned, open[i].CancellingBy = nil, ""
		steps := maps.Clone(open[i].Steps)
		for id, step := range steps {
			step.Failures = 0
			steps[id] = step
		}
		open[i].Steps = steps
	}
	return open
}
