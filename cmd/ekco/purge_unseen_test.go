package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
)

func TestPurgeNodeOfANameWithoutATraceFailsAndAsksForNothing(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.err = &fsmnode.UnknownNodeError{
		Name: "worker-8", Near: []string{"worker-2"}, Places: []string{"Rook", "etcd"},
		Doubts: []string{"Ceph could not be asked: no mgr"},
	}
	d := newDesk(t, op)
	for _, args := range [][]string{nil, {"--yes"}, {"--force"}, {"--dry-run"}, {"--no-wait"}} {
		d.expect(d.types(append([]string{"purge-node", "worker-8"}, args...)...), exitFailed, "",
			`ekco: unknown node "worker-8": neither the cluster nor the journal has it, and EKCO found no trace of it in Rook or etcd; `+
				`Ceph could not be asked: no mgr; did you mean worker-2?`)
	}
	if len(op.requests) != 0 {
		t.Errorf("requested %+v", op.requests)
	}
}

func TestPurgeNodeOfANodeThatWasNeverSeenAsksFirst(t *testing.T) {
	for _, test := range []struct {
		name, typed string
		code        int
	}{
		{"yes", "y\n", exitDone},
		{"no", "\n", exitFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			op := purging(t, journal.OutcomeDone)
			op.explained.Subject = journal.NodeSubject("worker-9", journal.TracedUID("worker-9"))
			op.explained.Checks = []api.CheckResult{{
				Preflight: "NodeWasSeen", Verdict: actions.VerdictWarn, Reason: "EKCO never saw node worker-9; what is left of it: CRUSH host worker-9",
			}}
			d := newDesk(t, op)
			d.app.askable, d.app.stdin = true, strings.NewReader(test.typed)
			d.expect(d.types("purge-node", "worker-9"), test.code, "", "warning: EKCO never saw node worker-9; what is left of it: CRUSH host worker-9")
			if test.code != exitDone {
				if len(op.requests) != 0 {
					t.Error("a purge was requested although the answer was no")
				}
				return
			}
			want := []fsm.Request{{
				Kind: journal.ActionPurgeNode, Name: "worker-9", UID: "traced:worker-9", Actor: api.LocalActor(),
				Warned: []journal.ActionWarned{{Preflight: "NodeWasSeen", Warning: op.explained.Checks[0].Reason, Answer: "yes"}},
			}}
			if diff := cmp.Diff(want, op.requests); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPurgeNodeAsksForWhatItShowedFirstWhoeverDoesTheWork(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	d := newDesk(t, op)
	p := &purger{app: d.app, flags: purgeFlags{node: "worker-2", noWait: true}, backend: op}
	for _, uid := range []string{"u2", "u3"} { // another node joins under the name, and the worker leaves
		op.explained.Subject.UID = uid
		if err := p.run(t.Context(), p.flags.request(config.Config{}, false)); err != nil {
			t.Fatal(err)
		}
	}
	if len(op.requests) != 2 || op.requests[1].UID != "u2" {
		t.Errorf("requested %+v", op.requests)
	}
}
