package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// aHall is an operator of two capabilities, lamps and stoves, with one of each in a hall.
func aHall(t *testing.T) (*desk, *fakeOperator) {
	t.Helper()
	op := &fakeOperator{status: api.Status{Things: []api.ThingStatus{{Machine: "lamp", Name: "hall"}, {Machine: "stove", Name: "hall"}}}}
	d := newDesk(t, op)
	d.app.words = words.New(fsmnode.Words,
		words.Component{Name: "lamp", Machine: "lamp", Actions: []words.Action{{Kind: "light-lamp", Verb: "light", Noun: "lamp"}}},
		words.Component{Name: "stove", Machine: "stove", Actions: []words.Action{{Kind: "heat-stove", Verb: "heat", Noun: "stove"}}})
	add := func(kind, action string, payload journal.Payload) {
		e := event(t, uint64(len(op.past)+1), action, journal.TypeOf(payload), payload)
		e.Subject = journal.Subject{Kind: kind, Name: "hall", UID: "uid-" + kind}
		op.past = append(op.past, e)
	}
	add("Lamp", "", &journal.ThingObserved{Machine: "lamp", Facts: json.RawMessage(`{"lit":false}`)})
	add("Stove", "", &journal.ThingObserved{Machine: "stove", Facts: json.RawMessage(`{"hot":false}`)})
	add("Lamp", "light-hall-1", &journal.ActionRequested{Kind: "light-lamp"})
	add("Stove", "heat-hall-2", &journal.ActionRequested{Kind: "heat-stove"})
	add("Lamp", "light-hall-1", &journal.StepStarted{Step: "switch-on"})
	add("Stove", "heat-hall-2", &journal.StepStarted{Step: "kindle"})
	add("Cluster", "", &journal.PolicyRefused{Kind: "heat-stove", Rule: "Summer"})
	add("Lamp", "", &journal.ThingTransitioned{Machine: "lamp", From: "Dark", To: "Burning"})
	add("Stove", "", &journal.ThingGone{Machine: "stove"})
	add("Node", "", &journal.NodeGone{Reason: "deleted"})
	return d, op
}

// lists expects history to show exactly the events of these numbers.
func (d *desk) lists(args string, want ...uint64) {
	d.t.Helper()
	if code := d.types(append([]string{"history", "-o", "json"}, strings.Fields(args)...)...); code != exitDone {
		d.t.Errorf("history %s: exit code %d: %s", args, code, d.errOut)
	}
	var got []uint64
	for line := range strings.Lines(d.out.String()) {
		var e journal.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			d.t.Fatalf("history %s: %v: %s", args, err, line)
		}
		got = append(got, e.Seq)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Errorf("history %s: %s", args, diff)
	}
}

func TestHistoryOfAComponentIsOfItsThingsAndItsActionsAlone(t *testing.T) {
	d, op := aHall(t)
	d.lists("--component lamp", 1, 3, 5, 8)
	d.lists("--component stove", 2, 4, 6, 7, 9)
	d.lists("--component lamp,policy", 1, 3, 5, 7, 8)
	d.lists("--component lamp --type thing.*", 1, 8)
	d.lists("--component lamp --limit 2", 5, 8)
	d.lists("--component stove --limit 2 --reverse", 9, 7)
	d.lists("--component node", 10)
	d.lists("--component action", 3, 4, 5, 6)
	// What the actions are was said before the time that is asked about.
	d.lists("--component lamp --type step.*", 5)
	asked := map[string]bool{}
	for _, query := range op.queries {
		asked[query.Action] = true
	}
	if !asked["light-hall-1"] || !asked["heat-hall-2"] {
		t.Errorf("asked was %+v", op.queries)
	}
}

func TestHistoryOfAThingIsAboutThatThingAlone(t *testing.T) {
	d, op := aHall(t)
	d.lists("lamp/hall", 1, 3, 5, 8)
	d.lists("STOVE/hall --type thing.*", 2, 9)
	d.lists("lamp/hall --limit 1", 8)
	d.lists("node/hall", 10)
	d.lists("lamp/hall --action heat-hall-2")
	if d.errOut.Len() != 0 {
		t.Errorf("said %q", d.errOut)
	}
	// A machine need not be called as its things are.
	op.things = []api.ThingExplanation{{Machine: "heating", Subject: journal.Subject{Kind: "Stove", Name: "hall"}}}
	d.lists("heating/hall", 2, 4, 6, 9)
	op.things, op.thingErr = nil, api.ErrNotFound
	d.lists("lamp/halm")
	d.expect(d.types("history", "lamp/halm"), exitDone, "", "The journal has nothing about lamp/halm; did you mean lamp/hall?\n")
}

func TestAThingIsExplained(t *testing.T) {
	d, op := aHall(t)
	op.things = []api.ThingExplanation{{
		Now: noon, Machine: "lamp", Subject: journal.Subject{Kind: "Lamp", Name: "hall", UID: "uid-Lamp"}, State: "Dark",
		Since: noon.Add(-90 * time.Second), FactsSeq: 1,
		Actions:  []journal.ActionRecord{{ID: "light-hall-1", Kind: "light-lamp", Status: fsm.Held, Holds: map[string]journal.ActionHeld{"": {Preflight: "Ladder", Reason: "it is in use"}}}},
		Refusals: []fsm.Refusal{{Kind: "light-lamp", Subject: journal.Subject{Kind: "Lamp", Name: "hall"}, Rule: "Daylight", Reason: "there is daylight", Since: noon}},
		Contests: []api.ContestStatus{{Key: "switch", Action: "light-hall-0", Last: noon, Until: noon.Add(time.Hour)}},
		Last:     map[journal.ActionKind]fsm.Ending{"light-lamp": {Action: "light-hall-0", Outcome: journal.OutcomeDone}},
	}}
	d.expect(d.types("explain", "lamp/hall"), exitDone, "lamp hall (uid uid-Lamp)\nState:    Dark, since 2026-11-21T11:58:30Z (1m30s ago)\n"+
		"Because:  of #1, at 2026-11-21T11:00:01Z: lamp hall is now {\"lit\":false}\n", "")
	for _, want := range []string{
		"light-hall-1", "ekco retry light-hall-1", "ekco cancel light-hall-1", "ekco history lamp/hall -o tree", "it is in use (Ladder)", "light lamp hall: Daylight: there is daylight",
		"switch: another program keeps changing it; last set by light-hall-0 at 2026-11-21T12:00:00Z, next at 2026-11-21T13:00:00Z",
		"light-hall-0: done; ekco history --action light-hall-0",
	} {
		if !strings.Contains(d.out.String(), want) {
			t.Errorf("does not say %q:\n%s", want, d.out)
		}
	}
	op.status.Actions = []journal.ActionRecord{{ID: "light-hall-1"}}
	d.expect(d.types("explain", "light-hall-1", "-o", "json"), exitDone, `"machine": "lamp"`, "")
	if diff := cmp.Diff([]api.ThingRequest{{Kind: "lamp", Name: "hall"}, {Action: "light-hall-1"}}, op.about); diff != "" {
		t.Error(diff)
	}
	op.things, op.thingErr = nil, fmt.Errorf("EKCO knows no lamp halm; did you mean lamp/hall?")
	d.expect(d.types("explain", "lamp/halm"), exitFailed, "", "ekco: EKCO knows no lamp halm; did you mean lamp/hall?")
}

func TestAThingIsExplainedFromTheFileWhereNoOperatorRuns(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	d.expect(d.types("explain", "node/worker-2"), exitDone, "node worker-2 (uid u2)\nState:    Healthy", "")
	d.expect(d.types("explain", "Node/worker-2"), exitDone, ": node worker-2 (worker) is ready\n\nNo action is open.", "")
	d.expect(d.types("explain", "node/worker-3"), exitFailed, "", "EKCO knows no node worker-3; did you mean node/worker-2?")
	d.expect(d.types("explain", "worker-2"), exitDone, "node worker-2 (uid u2)\nState:    Healthy", "")
	d.expect(d.types("explain", "worker-3"), exitFailed, "", `EKCO knows no node, component or action "worker-3"; did you mean`)
	d.expect(d.types("explain"), exitDone, "NEEDS YOU: 1 problem\n\nno operator", "")
	d.expect(d.types("explain", "-o", "json"), exitDone, `"kind": "not_running"`, "")
	d.expect(d.types("history", "node/worker-2", "--since", "all"), exitDone, "node worker-2 (worker) is ready", "")
}

// Kubelet certificates, load balancers and reports have the names of their nodes.
func TestABareNameIsThatOfANode(t *testing.T) {
	d, op := aHall(t)
	op.status.Nodes = []api.NodeStatus{{Name: "hall"}}
	subject := func(kind string) journal.Subject { return journal.Subject{Kind: kind, Name: "hall"} }
	op.status.Actions = []journal.ActionRecord{{ID: "light-hall-1", Subject: subject("Lamp")}, {ID: "clear-hall-2", Subject: subject("Node")}}
	op.things = []api.ThingExplanation{{Machine: "node", Subject: subject("Node")}}
	d.lists("hall", 10)
	for typed, want := range map[string]any{
		"pause hall --reason r":      api.PauseRequest{Name: "node/hall", Reason: "r"},
		"pause lamp/hall --reason r": api.PauseRequest{Name: "lamp/hall", Reason: "r"},
		"pause shed --reason r":      api.PauseRequest{Name: "shed", Reason: "r"},
		"resume hall":                api.ResumeRequest{Name: "node/hall"},
		"cancel hall":                api.CancelRequest{Action: "clear-hall-2"},
		"retry hall":                 api.RetryRequest{Action: "clear-hall-2"},
	} {
		op.words = nil
		if code := d.types(strings.Fields(typed)...); code != exitDone || len(op.words) != 1 {
			t.Errorf("%s: exit code %d, asked for %+v: %s", typed, code, op.words, d.errOut)
		} else if diff := cmp.Diff(want, op.words[0]); diff != "" {
			t.Errorf("%s: %s", typed, diff)
		}
	}
	d.expect(d.types("explain", "hall"), exitDone, "node hall", "")
	if slices.ContainsFunc(op.about, func(r api.ThingRequest) bool { return r.Kind != "node" }) {
		t.Errorf("it asked about %+v", op.about)
	}
}

// The state of a node does not keep the end of a cancelled purge.
func TestExplainNamesTheLastActionsOfEachKind(t *testing.T) {
	node := journal.NodeSubject("worker-2", "u2")
	op := &fakeOperator{
		status: api.Status{Nodes: []api.NodeStatus{{Name: "worker-2"}}},
		things: []api.ThingExplanation{{Machine: "node", Subject: node}},
	}
	d := newDesk(t, op)
	add := func(action string, payload journal.Payload) {
		e := event(t, uint64(len(op.past)+1), action, journal.TypeOf(payload), payload)
		e.Subject = node
		op.past = append(op.past, e)
	}
	add("clear-1", &journal.ActionRequested{Kind: journal.ActionClearNode})
	add("purge-2", &journal.ActionRequested{Kind: journal.ActionPurgeNode})
	add("purge-2", &journal.ActionEnded{Outcome: journal.OutcomePartial})
	add("clear-1", &journal.ActionEnded{Outcome: journal.OutcomeDone})
	add("purge-5", &journal.ActionRequested{Kind: journal.ActionPurgeNode})
	add("purge-5", &journal.ActionEnded{Outcome: journal.OutcomeCancelled})
	d.expect(d.types("explain", "worker-2"), exitDone, "LAST ACTIONS\n  clear-1: done; ekco history --action clear-1\n  purge-5: cancelled; ekco history --action purge-5\n", "")
}
