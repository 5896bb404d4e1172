package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// halfway returns an operator in the middle of a purge, whose step reports how
// far it has come.
func halfway(t *testing.T) *fakeOperator {
	t.Helper()
	op := purging(t, journal.OutcomeDone)
	op.live, op.followed = op.live[:4], make(chan struct{})
	op.status.Actions = []journal.ActionRecord{{ID: purgeID}}
	op.status.Progress = map[string]map[string]actions.Progress{
		purgeID: {"delete-node": {Done: 1240, Total: 10_000, Unit: "objects"}},
	}
	return op
}

// shows runs a command on a terminal until its last line says something.
func (d *desk) shows(want string, args ...string) {
	d.t.Helper()
	d.app.stderrTerminal, d.app.stdoutTerminal = true, true
	ctx, cancel := context.WithTimeout(d.t.Context(), bound)
	defer cancel()
	seen := make(chan struct{}, 1)
	d.app.stderr = writerFunc(func(content []byte) (int, error) {
		if strings.Contains(string(content), want) {
			select {
			case seen <- struct{}{}:
			default:
			}
			cancel()
		}
		return len(content), nil
	})
	d.typesUntil(ctx, args...)
	if len(seen) == 0 {
		d.t.Errorf("%s never shows %q", strings.Join(args, " "), want)
	}
}

func TestOnATerminalProgressIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = eraseLine + cutLines + "… delete-node: 1,240 of 10,000 objects"
		newDesk(t, halfway(t)).shows(strings.TrimPrefix(want, eraseLine+cutLines), "purge-node", "worker-2")
		newDesk(t, halfway(t)).shows(want, "history", "--follow", "--action", purgeID)
	})
}

// TestWhoJoinsAPurgeIsShownTheProgressOfItsStep: that has begun before, and begins no more.
func TestWhoJoinsAPurgeIsShownTheProgressOfItsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := halfway(t)
		op.live, op.admitted.Resumed = nil, true
		op.status.Actions[0].Steps = map[string]journal.StepRecord{"delete-node": {Attempts: 1, Open: true}}
		newDesk(t, op).shows("… delete-node: 1,240 of 10,000 objects", "purge-node", "worker-2")
	})
}

// TestWhoFollowsOneThingIsShownNoProgressOfOthers: and who follows everything is told
// which action it is.
func TestWhoFollowsOneThingIsShownNoProgressOfOthers(t *testing.T) {
	status := halfway(t).status
	status.Actions[0].Subject = journal.NodeSubject("worker-2", "uid-2")
	const steps = "delete-node: 1,240 of 10,000 objects"
	for name, of := range map[string]struct {
		query journal.Query
		want  string
	}{
		"everything":     {journal.Query{Types: []journal.Type{journal.TypeStepDone}}, purgeID + ": " + steps},
		"the action":     {journal.Query{Action: purgeID}, steps},
		"another action": {journal.Query{Action: "purge-worker-3-9"}, ""},
		"the node":       {journal.Query{Node: "worker-2"}, purgeID + ": " + steps},
		"another node":   {journal.Query{Node: "worker-3"}, ""},
		"the thing":      {journal.Query{Name: "worker-2"}, purgeID + ": " + steps},
		"another thing":  {journal.Query{Name: "desk"}, ""},
	} {
		if got := progressOf(status, of.query); got != of.want {
			t.Errorf("who follows %s is shown %q, want %q", name, got, of.want)
		}
	}
}

func TestASignOfLifeIsGoneWhenSomethingIsPrinted(t *testing.T) {
	var screen strings.Builder
	sign := &statusLine{w: &screen, terminal: true}
	sign.clear()
	sign.show("one")
	sign.show("two")
	if err := sign.printAbove(func() error { _, err := screen.WriteString("line\n"); return err }); err != nil {
		t.Fatal(err)
	}
	sign.clear()
	if got, want := screen.String(), eraseLine+cutLines+"one"+wrapLines+eraseLine+cutLines+"two"+wrapLines+eraseLine+"line\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	elsewhere := &statusLine{w: &screen}
	screen.Reset()
	elsewhere.show("three")
	elsewhere.clear()
	if screen.Len() != 0 {
		t.Errorf("where nothing can be overwritten: %q", screen.String())
	}
}
