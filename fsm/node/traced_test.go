package node

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// askTraced asks for a node of which that was found.
func askTraced(node string, found ...string) Request {
	request := ask(node)
	request.Traces = &Traces{
		NodeTraced: journal.NodeTraced{Found: found, Doubts: []string{"etcd could not be asked"}},
		Places:     []string{"Rook and Ceph", "etcd"}, Names: []string{"w7", "elsewhere"},
	}
	return request
}

func TestANodeThatNobodyKnowsIsPurgedByItsTraces(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	request := askTraced("w8", "CRUSH host w8", "etcd member w8")
	request.Warned = []journal.ActionWarned{{Preflight: "NodeWasSeen", Warning: "never", Answer: "yes"}}
	admission := w.mustAdmit(request)
	want := []string{"node.traced w8", "action.requested w8: purge-node", "node.transitioned w8: Gone to Purging", "action.warned w8"}
	if diff := cmp.Diff(want, lines(admission.Events)); diff != "" {
		t.Fatal(diff)
	}
	for _, draft := range admission.Events {
		if draft.Subject != journal.NodeSubject("w8", "traced:w8") {
			t.Errorf("%s is about %+v", draft.Type, draft.Subject)
		}
	}
	if first := admission.Events[0]; first.Actor != "cli:root@h" || first.Action != admission.Action {
		t.Errorf("the trace is of actor %s and action %s", first.Actor, first.Action)
	}
	if !strings.Contains(admission.Message, "never saw") || !strings.Contains(admission.Message, "CRUSH host w8; etcd member w8") {
		t.Errorf("message: %s", admission.Message)
	}
	n := Of(w.s, "traced:w8")
	if n.Present() || n.Facts.Role != "" || n.State != Purging {
		t.Errorf("the machine is %+v", n)
	}
	if asked := w.s.Actions[admission.Action].Request; asked.Input != nil && asked.Input != (journal.PurgeInput{}) || !asked.Manual {
		t.Errorf("requested as %+v", asked)
	}
	w.wantDecided()

	w.plan(admission.Action)
	w.startStep(admission.Action, "delete-node")
	w.end(admission.Action, journal.OutcomeDone)
	w.wantDecided("node.transitioned w8: Purging to Purged")
	again, err := w.admit(askTraced("w8"))
	if err != nil || !again.AlreadyDone || len(again.Events) != 0 {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	for _, want := range []string{"w8 (which EKCO never saw) was purged already, at " + fsm.Stamp(n.Since), "no trace of it in Rook and Ceph or etcd; etcd could not be asked"} {
		if !strings.Contains(again.Message, want) {
			t.Errorf("%q does not say %q", again.Message, want)
		}
	}
}

func TestAPurgedNameThatLeftTracesAgainIsPurgedAgain(t *testing.T) {
	for name, first := range map[string]func(w *world) Admission{
		"EKCO never saw the first": func(w *world) Admission { return w.mustAdmit(askTraced("w8", "CRUSH host w8")) },
		"EKCO saw the first": func(w *world) Admission {
			w.observe("w8")
			w.gone("w8", "deleted")
			w.decide()
			return w.mustAdmit(ask("w8"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster("w1")
			admission := first(w)
			w.plan(admission.Action)
			w.startStep(admission.Action, "delete-node")
			w.end(admission.Action, journal.OutcomeDone)
			w.wantDecided("node.transitioned w8: Purging to Purged")

			again := w.mustAdmit(askTraced("w8", "CRUSH host w8"))
			if again.AlreadyDone || again.Action == admission.Action {
				t.Fatalf("asked again: %+v", again)
			}
			if !strings.Contains(again.Message, "was purged at ") || !strings.Contains(again.Message, "CRUSH host w8") {
				t.Errorf("message: %s", again.Message)
			}
			if n := Of(w.s, "traced:w8"); n == nil || n.State != Purging || n.lastPurge() != nil {
				t.Fatalf("the machine is %+v", n)
			}
			if _, needed := NeedsTraces(w.s, "w8"); needed {
				t.Error("traces are looked for although a purge is open")
			}
			w.plan(again.Action)
			w.end(again.Action, journal.OutcomeDone)
			w.wantDecided("node.transitioned w8: Purging to Purged")
			if since, needed := NeedsTraces(w.s, "w8"); !needed || !since.Equal(Of(w.s, "traced:w8").Since) {
				t.Errorf("a look is needed: %v, since %v", needed, since)
			}
			finished := slices.DeleteFunc(slices.Clone(w.s.Finished), func(uid string) bool { return uid != "traced:w8" })
			if len(w.s.Problems) != 0 || len(finished) != 1 {
				t.Errorf("problems %q, finished %q", w.s.Problems, w.s.Finished)
			}
		})
	}
}

func TestAPurgedMachineThatIsMeantByItsUIDIsNotTraced(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.observe("w8")
	w.gone("w8", "deleted")
	w.decide()
	action := w.mustAdmit(ask("w8")).Action
	w.plan(action)
	w.end(action, journal.OutcomeDone)
	w.decide()
	request := askTraced("w8", "CRUSH host w8")
	request.UID = uidOf("w8")
	if again := w.mustAdmit(request); !again.AlreadyDone {
		t.Errorf("asked for by its uid: %+v", again)
	}
	request.UID = "another"
	w.wantRefused(request, RuleReplaced, "check it")
}

func TestTracesUnderAPurgedNameThatMayBeAnotherNodesStay(t *testing.T) {
	w := newWorld(t)
	action := w.mustAdmit(askTraced("w.8", "CRUSH host w-8")).Action
	w.plan(action)
	w.end(action, journal.OutcomeDone)
	w.decide()
	w.observe("w-8")
	if again := w.mustAdmit(askTraced("w.8", "CRUSH host w-8")); !again.AlreadyDone {
		t.Errorf("asked again: %+v", again)
	}
}

func TestANameWithoutNodeAndTracesIsUnknown(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	admission, err := w.admit(askTraced("w8"))
	if !errors.Is(err, ErrUnknownNode) || len(admission.Events) != 0 || Of(w.s, "traced:w8") != nil {
		t.Fatalf("got %+v, %v", admission, err)
	}
	for _, want := range []string{`unknown node "w8"`, "found no trace of it in Rook and Ceph or etcd", "etcd could not be asked", "w1 or w7"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestTheHostnameOfAKnownNodeIsNoNodeOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.observe("w1", func(f *journal.NodeFacts) { f.Hostname = "host.1" })
	for _, name := range []string{"host.1", "host-1"} {
		admission, err := w.admit(askTraced(name, "CRUSH host host-1"))
		if !errors.Is(err, ErrUnknownNode) || len(admission.Events) != 0 || !strings.Contains(err.Error(), "hostname of node w1") {
			t.Errorf("%s: %+v, %v", name, admission, err)
		}
	}
	w.observe("w.2")
	if _, err := w.admit(askTraced("w-2", "CRUSH host w-2")); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("w-2: %v", err)
	}
}

func TestInSafeModeNothingIsTraced(t *testing.T) {
	w := newWorld(t)
	w.tell(journal.TypeJournalSalvaged, journal.JournalSubject, journal.JournalSalvaged{DamagedFile: "f"})
	w.wantRefused(askTraced("w8", "CRUSH host w8"), fsm.RuleSafeMode, "accept")
	if Of(w.s, "traced:w8") != nil {
		t.Error("a machine was opened")
	}
}

func TestANodeThatJoinsUnderTheNameOfATracedOneEndsItsPurge(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	admission := w.mustAdmit(askTraced("w8", "CRUSH host w8"))
	fresh := w.observe("w8")
	w.wantDecided("action.cancelling w8", "node.transitioned w8: Purging to Gone")
	w.end(admission.Action, journal.OutcomeCancelled)
	w.wantDecided()
	if !fresh.Present() || Of(w.s, "traced:w8").ReplacedBy != fresh.UID {
		t.Errorf("the traced machine is %+v", Of(w.s, "traced:w8"))
	}
	if nodes := ByName(w.s, "w8"); nodes[0] != fresh {
		t.Errorf("the name means %+v", nodes[0])
	}
}

func TestANodeThatJoinedSinceThePersonLookedIsNotPurged(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1", "w2")
	w.observe("w8")
	request := askTraced("w8", "CRUSH host w8")
	request.UID = journal.TracedUID("w8")
	w.wantRefused(request, RuleReplaced, "another node")
	if len(w.s.Actions) != 0 {
		t.Errorf("open: %v", w.s.Actions)
	}
	request.UID = uidOf("w8")
	w.mustAdmit(request)
}

func TestAnAdoptedPurgeOfATracedNodeKeepsItsMachine(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	subject := journal.NodeSubject("w8", journal.TracedUID("w8"))
	rec := journal.ActionRecord{
		ID: "purge-w8-3", Kind: journal.ActionPurgeNode, Subject: subject, RequestedBy: person, RequestedAt: w.now,
		Request: journal.ActionRequested{Kind: journal.ActionPurgeNode, Manual: true},
	}
	w.write(journal.Draft{
		Type: journal.TypeActionAdopted, Subject: subject, Action: rec.ID, Actor: fsm.ActorOperator,
		Payload: journal.ActionAdopted{Record: rec, JournalID: "other"},
	})
	w.wantDecided("node.transitioned w8: Gone to Purging")
	if resumed := w.mustAdmit(askTraced("w8", "CRUSH host w8")); !resumed.Resumed || resumed.Action != rec.ID {
		t.Errorf("asked again: %+v", resumed)
	}
	w.plan(rec.ID)
	w.end(rec.ID, journal.OutcomeCancelled)
	w.wantDecided("node.transitioned w8: Purging to Gone")
}

func TestATraceThatMakesNoSenseOpensNoMachine(t *testing.T) {
	w := newWorld(t)
	w.cluster("w1")
	w.tell(journal.TypeNodeTraced, journal.NodeSubject("w1", uidOf("w1")), journal.NodeTraced{})
	w.tell(journal.TypeNodeObserved, journal.NodeSubject("w8", journal.TracedUID("w8")), journal.NodeObserved{})
	if len(w.s.Problems) != 2 || Of(w.s, "traced:w8") != nil {
		t.Errorf("problems %q, machines %v", w.s.Problems, sortedKeys(w.s.Things))
	}
	w.wantState("w1", Healthy)
}

func TestTracesAreFoundByWhoAnswersAndNeverSentByWhoAsks(t *testing.T) {
	body, err := json.Marshal(askTraced("w8", "CRUSH host w8").Asked())
	if err != nil || strings.Contains(string(body), "CRUSH") {
		t.Errorf("sent as %s, %v", body, err)
	}
}
