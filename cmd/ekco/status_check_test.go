package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
)

func TestStatusCheckTellsByItsExitCode(t *testing.T) {
	fine := api.Status{Now: noon, Operator: api.OperatorStatus{Running: true}, Journal: api.JournalStatus{Writable: true}}
	working, stalled := fine, fine
	working.Actions = []journal.ActionRecord{{ID: purgeID}}
	stalled.Actions = []journal.ActionRecord{{ID: purgeID, Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("worker-2", "u"), Stalled: &journal.ActionStalled{Step: "delete-node"}}}
	for _, test := range []struct {
		status api.Status
		code   int
		line   string
	}{
		{fine, 0, "OK\n"},
		{working, 1, "WORKING: "},
		{stalled, 2, "NEEDS YOU: purge of worker-2 is stalled at delete-node (ekco explain " + purgeID + ")\n"},
	} {
		d := newDesk(t, &fakeOperator{status: test.status})
		d.expect(d.types("status", "--check"), test.code, test.line, "")
		d.expect(d.types("status"), exitDone, test.line, "")
	}
	d := newDesk(t, &fakeOperator{err: errors.New("no disk")})
	d.expect(d.types("status", "--check"), exitNeedsYou, "", "ekco: no disk")
	d.expect(d.types("status"), exitFailed, "", "ekco: no disk")
}

func TestStatusOfANameLeavesOutTheOthers(t *testing.T) {
	d := newDesk(t, &fakeOperator{status: api.Status{Now: noon, Nodes: []api.NodeStatus{{Name: "worker-1"}, {Name: "worker-2"}}}})
	d.expect(d.types("status", "worker-1"), exitDone, "worker-1", "")
	d.expectNot("worker-2")
	d.expect(d.types("status", "worker-3"), exitFailed, "", `EKCO knows no node or component "worker-3" ("ekco status --all" shows them); did you mean worker-1 or worker-2?`)
}

// expectNot checks that standard output does not have the text.
func (d *desk) expectNot(text string) {
	d.t.Helper()
	if got := d.out.String(); got == "" || strings.Contains(got, text) {
		d.t.Errorf("standard output has %q, or nothing:\n%s", text, got)
	}
}
