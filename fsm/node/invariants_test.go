package node

import (
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// mustFold writes drafts of the machines themselves: each must be foldable.
func (h *history) mustFold(t *rapid.T, drafts []journal.Draft) {
	before := len(h.s.Problems)
	h.write(drafts...)
	if len(h.s.Problems) > before {
		t.Fatalf("cannot fold %s: %q", lines(drafts), h.s.Problems)
	}
}

func (h *history) decideAndCheck(t *rapid.T) {
	h.s.Problems = nil // made by nonsense such as two gone in a row
	before := snapshotText(t, h.s)
	d := fsm.Decide(h.s, h.p.whole(), h.now)
	if diff := cmp.Diff(before, snapshotText(t, h.s)); diff != "" {
		t.Fatalf("Decide changed the state:\n%s", diff)
	}
	for _, draft := range d.Events {
		if request, ok := draft.Payload.(journal.ActionRequested); ok {
			h.checkRequest(t, draft, request)
		}
	}
	h.mustFold(t, d.Events)
	again := fsm.Decide(h.s, h.p.whole(), h.now)
	if len(again.Events) > 0 {
		t.Fatalf("no fixpoint: after %s come %s", lines(d.Events), lines(again.Events))
	}
	h.next = again.Next
	counted := countsOf(h.s)
	h.s.Changed(Machine)
	if recounted := countsOf(h.s); counted != recounted {
		t.Fatalf("the count %+v is stale, it should be %+v", counted, recounted)
	}
	h.checkNext(t)
	h.checkOpen(t)
}

// checkRequest judges a request with arithmetic of its own.
func (h *history) checkRequest(t *rapid.T, draft journal.Draft, request journal.ActionRequested) {
	n := Of(h.s, draft.Subject.UID)
	unreachable := tainted(n, "node.kubernetes.io/unreachable")
	_, pausedAll := h.s.Pauses[""]
	_, paused := h.s.Pauses[fsm.PauseKey(n.Subject)]
	pausedAll = pausedAll && (h.s.Pauses[""].Until.IsZero() || h.now.Before(h.s.Pauses[""].Until))
	paused = paused && (h.s.Pauses[fsm.PauseKey(n.Subject)].Until.IsZero() || h.now.Before(h.s.Pauses[fsm.PauseKey(n.Subject)].Until))
	switch {
	case !unreachable || !n.GoneAt.IsZero():
		t.Fatalf("%s of a node that came back or is gone", draft.Action)
	case pausedAll || paused:
		t.Fatalf("%s while paused", draft.Action)
	case h.s.API.SettlingFrom.IsZero() || h.now.Before(h.s.API.SettlingFrom.Add(h.p.Settling)) || !h.s.API.LostAt.IsZero():
		t.Fatalf("%s while settling or without API", draft.Action)
	case h.s.Journal.Salvaged != nil:
		t.Fatalf("%s in safe mode", draft.Action)
	case n.Facts.Excluded:
		t.Fatalf("%s of an excluded node", draft.Action)
	}
	total, unknown, ready := 0, 0, 0
	for other := range All(h.s) {
		// A purge that is done may be recorded before its node becomes Purged.
		if last := other.Last[journal.ActionPurgeNode]; !other.GoneAt.IsZero() || other.State == Purged || last != nil && last.Outcome == journal.OutcomeDone {
			continue
		}
		total++
		if tainted(other, "node.kubernetes.io/unreachable") {
			unknown++
		}
		if other.Facts.Role == n.Facts.Role && len(other.Facts.Taints) == 0 {
			ready++
		}
	}
	if unknown > h.p.MaxUnknown.Limit(total) {
		t.Fatalf("%s in a storm of %d of %d", draft.Action, unknown, total)
	}
	if request.Kind == journal.ActionPurgeNode {
		h.checkPurge(t, draft.Action, n, ready)
	}
	for _, pod := range journal.ClearInputOf(request).Pods {
		seen := n.Pods[pod.UID]
		if h.now.Sub(seen.SeenAt) < time.Duration(seen.Grace)+h.p.PodGrace || h.now.Sub(n.UnreachableSince) < h.p.ClearAfter {
			t.Fatalf("%s takes on a pod that is not due", draft.Action)
		}
	}
}

func tainted(n *Node, key string) bool {
	return slices.ContainsFunc(n.Facts.Taints, func(taint journal.Taint) bool { return taint.Key == key })
}

func (h *history) checkPurge(t *rapid.T, action string, n *Node, ready int) {
	least := h.p.MinReadyWorkers
	if n.Facts.Role == journal.RolePrimary {
		least = h.p.MinReadyPrimaries
	}
	if ready < least {
		t.Fatalf("%s leaves %d ready nodes of its role, the minimum is %d", action, ready, least)
	}
	if since := h.s.EndedAt[journal.ActionPurgeNode]; !since.IsZero() && h.now.Before(since.Add(h.p.Cooldown)) {
		t.Fatalf("%s within the cooldown", action)
	}
	for id, rec := range h.s.Actions {
		if rec.Kind == journal.ActionPurgeNode {
			t.Fatalf("%s while %s is open", action, id)
		}
	}
}

// checkNext: nothing is decided before the time that was announced.
func (h *history) checkNext(t *rapid.T) {
	probe := h.now.Add(100 * time.Hour)
	if !h.next.IsZero() {
		if !h.next.After(h.now) {
			t.Fatalf("next %s is not after now %s", h.next, h.now)
		}
		probe = h.next.Add(-1)
	}
	if early := fsm.Decide(h.s, h.p.whole(), probe); len(early.Events) > 0 {
		t.Fatalf("next is %s, but %s is decided before", h.next, lines(early.Events))
	}
}

func (h *history) checkOpen(t *rapid.T) {
	automatic, openSteps := 0, 0
	for _, rec := range h.s.Actions {
		if rec.Kind != journal.ActionPurgeNode {
			continue
		}
		if !rec.Request.Manual {
			automatic++
		}
		if slices.ContainsFunc(slices.Collect(maps.Values(rec.Steps)), func(step journal.StepRecord) bool { return step.Open }) {
			openSteps++
		}
		if rec.PastNoReturn && rec.Cancelling != nil {
			t.Fatalf("%s is past its point of no return and is being cancelled", rec.ID)
		}
	}
	if automatic > 1 {
		t.Fatalf("%d automatic purges are open", automatic)
	}
	if openSteps > 1 {
		t.Fatalf("%d purges have an open step", openSteps)
	}
}

// checkReplay: the whole journal, and a snapshot with the events after it,
// both lead to the live state.
func (h *history) checkReplay(t *rapid.T) {
	want := h.withoutProblems(t, h.s)
	replayed := fsm.NewState(Capability())
	for _, e := range h.events {
		replayed.Apply(e)
	}
	if diff := cmp.Diff(want, h.withoutProblems(t, replayed)); diff != "" {
		t.Fatalf("replay differs from live:\n%s", diff)
	}
	loaded, err := fsm.LoadState(h.snapshot, Capability())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.events[h.tail:] {
		loaded.Apply(e)
	}
	if diff := cmp.Diff(want, h.withoutProblems(t, loaded)); diff != "" {
		t.Fatalf("snapshot and tail differ from live:\n%s", diff)
	}
}

// withoutProblems leaves out what the test itself resets.
func (h *history) withoutProblems(t *rapid.T, s *fsm.State) string {
	s.Problems = nil
	return snapshotText(t, s)
}
