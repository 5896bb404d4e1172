package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// What a purge-node says about who does the work.
const (
	saysAlone   = "does the work itself"
	saysBegins  = ": purging node "
	saysResumes = "resuming "
	// saysDeletes is said by both: which of two comes first, and so begins or resumes, is open.
	saysDeletes = "delete-node begins"
)

// ask starts a purge-node, which finds out itself who does the work.
func (o *operator) ask(node string, more ...string) *child.Process {
	o.t.Helper()
	return child.Start(o.t, binaries.ekco, append([]string{
		"purge-node", node, "--kubeconfig", o.kubeconfig, "--journal", o.journal, "--config", o.config,
	}, more...)...)
}

func waitSays(t *testing.T, p *child.Process, what string) {
	t.Helper()
	eventually(t, await.HangTimeout, fmt.Sprintf("%s says %q", p, what), func() (bool, string) {
		return strings.Contains(p.Output.String(), what), p.Output.Tail(2000)
	})
}

// waitSplit waits until one of two commands says one thing and the other one
// another, and returns them in that order.
func waitSplit(t *testing.T, a, b *child.Process, one, other string) (first, second *child.Process) {
	t.Helper()
	split := func(a, b *child.Process) bool {
		return strings.Contains(a.Output.String(), one) && strings.Contains(b.Output.String(), other)
	}
	eventually(t, await.HangTimeout, fmt.Sprintf("one says %q and the other %q", one, other), func() (bool, string) {
		if split(b, a) {
			a, b = b, a
		}
		return split(a, b), a.Output.Tail(2000) + "\nand\n" + b.Output.Tail(2000)
	})
	return a, b
}

// wantOnePurge fails the test unless the journal holds exactly one purge of the
// node that ended so, requested by that actor and no other.
func (o *operator) wantOnePurge(node, actor string, outcome journal.Outcome) {
	o.t.Helper()
	if got := o.outcomes(node)[journal.ActionPurgeNode]; len(got) != 1 || got[0] != outcome {
		o.t.Errorf("purges of %s ended %v, want one, %s", node, got, outcome)
	}
	var actors []string
	for _, event := range o.events("--node", node, "--type", string(journal.TypeActionRequested)) {
		if request := decode[*journal.ActionRequested](o.t, event); request.Kind == journal.ActionPurgeNode {
			actors = append(actors, event.Actor)
		}
	}
	if len(actors) != 1 || actors[0] != actor {
		o.t.Errorf("purges of %s were asked for by %v, want once by %s", node, actors, actor)
	}
	o.checkRecorded(node)
}

// decode returns the payload of an event whose type is known.
func decode[P journal.Payload](t *testing.T, event journal.Event) P {
	t.Helper()
	payload, err := event.Decode()
	if err != nil {
		t.Fatal(err)
	}
	typed, ok := payload.(P)
	if !ok {
		t.Fatalf("event %d is a %T", event.Seq, payload)
	}
	return typed
}

// wantExits fails the test unless every command ends with that code and says so.
func wantExits(t *testing.T, code int, says string, commands ...*child.Process) {
	t.Helper()
	for _, p := range commands {
		if got := p.Wait(await.HangTimeout); got != code || !strings.Contains(p.Output.String(), says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s", p, got, code, says, p.Output.Tail(4000))
		}
	}
}

func TestTwoThatAskTheOperatorAtOnceGetOnePurgeAndOneOutcome(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, nil)
	o.startReady()
	for _, node := range []string{"worker-1", "worker-2"} {
		c.node("lose", node)
	}
	o.waitState("worker-1", fsmnode.Unknown)
	o.waitState("worker-2", fsmnode.Unknown)

	h := g.holdAll(deletes("worker-1"))
	first, second := waitSplit(t, o.ask("worker-1"), o.ask("worker-1"), saysBegins, saysResumes)
	h.await(t)
	h.pass()
	wantExits(t, 0, "node worker-1 is purged", first, second)

	// With a forgotten --journal, the command would begin a second journal beside the operator.
	elsewhere := *o
	elsewhere.journal = filepath.Join(t.TempDir(), "journal.db")
	wantExits(t, 1, "--without-operator", elsewhere.ask("worker-2"), elsewhere.ask("worker-2", "--dry-run"))
	if _, err := os.Stat(elsewhere.journal); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the refused command created a journal: %v", err)
	}
	if c.nodeExists("worker-1") {
		t.Error("the Node is still there")
	}
	o.wantOnePurge("worker-1", localActor(t), journal.OutcomeDone)

	// A purge that does not come to its end fails for both of them.
	h = g.holdAll(writesMirror)
	first, second = waitSplit(t, o.ask("worker-2"), o.ask("worker-2"), saysBegins, saysResumes)
	h.await(t)
	actions := o.status().Actions
	if len(actions) != 1 {
		t.Fatalf("%d actions are open, want 1", len(actions))
	}
	o.mustEkco("cancel", actions[0].ID)
	wantExits(t, 1, "ended cancelled", first, second)
	h.pass()
	if !c.nodeExists("worker-2") {
		t.Error("the Node was deleted by a purge that was cancelled")
	}
	o.wantOnePurge("worker-2", localActor(t), journal.OutcomeCancelled)
}

func TestOneOfTwoThatAskWithoutAnOperatorDoesTheWork(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, nil)
	for _, node := range []string{"worker-1", "worker-2"} {
		c.node("lose", node)
	}
	c.waitUnreachable("worker-1")
	c.waitUnreachable("worker-2")

	h := g.holdAll(deletes("worker-1"))
	worker, follower := waitSplit(t, o.ask("worker-1"), o.ask("worker-1"), saysAlone, saysDeletes)
	h.await(t)
	other := o.ask("worker-2")
	wantExits(t, 1, "a command that purges worker-1 holds the journal", other)
	h.pass()
	wantExits(t, 0, "node worker-1 is purged", worker, follower)
	if strings.Contains(follower.Output.String(), saysAlone) {
		t.Errorf("two did the work:\n%s", follower.Output.String())
	}
	o.wantOnePurge("worker-1", localActor(t), journal.OutcomeDone)

	// The other one goes on when the one that does the work is killed.
	h = g.holdAll(deletes("worker-2"))
	worker, follower = waitSplit(t, o.ask("worker-2"), o.ask("worker-2"), saysAlone, saysDeletes)
	h.await(t)
	worker.Kill()
	h.pass()
	wantExits(t, 0, "node worker-2 is purged", follower)
	waitSays(t, follower, saysAlone)
	if c.nodeExists("worker-1") || c.nodeExists("worker-2") {
		t.Error("a Node is still there")
	}
	o.wantOnePurge("worker-2", localActor(t), journal.OutcomeDone)
	o.mustEkco("journal", "verify")
}

func TestAnOperatorThatStartsWhileACommandPurgesNamesItAndFindsTheWorkDone(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, nil)
	c.node("lose", "worker-1")
	c.waitUnreachable("worker-1")

	h := g.holdAll(deletes("worker-1"))
	command := o.ask("worker-1")
	h.await(t)
	wantExits(t, 1, fmt.Sprintf("pid %d", command.PID()), o.start())
	h.pass()
	wantExits(t, 0, "node worker-1 is purged", command)
	o.startReady()
	o.waitState("worker-1", fsmnode.Purged)
	o.wantOnePurge("worker-1", localActor(t), journal.OutcomeDone)
}

func TestAnOperatorAndACommandThatStartAtOnceShareOnePurge(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, nil)
	c.node("lose", "worker-1")
	c.waitUnreachable("worker-1")

	h := g.holdAll(deletes("worker-1"))
	p, command := o.start(), o.ask("worker-1")
	h.await(t)
	h.pass()
	wantExits(t, 0, "node worker-1 is purged", command)
	eventually(t, await.HangTimeout, "the operator runs, started again as a kubelet would", func() (bool, string) {
		if !p.Running() {
			p = o.start()
		}
		return get("http://" + o.address + "/readyz")
	})
	o.waitState("worker-1", fsmnode.Purged)
	o.wantOnePurge("worker-1", localActor(t), journal.OutcomeDone)
}

func TestWhoAsksForWhatEKCOPurgesByItselfFollowsIt(t *testing.T) {
	t.Parallel()
	c, g, o := installGated(t, map[string]string{"purge_dead_nodes": "true"})
	o.startReady()
	h := g.holdAll(deletes("worker-1"))
	c.node("lose", "worker-1")
	h.await(t)
	command := o.ask("worker-1")
	waitSays(t, command, "by operator")
	h.pass()
	wantExits(t, 0, "node worker-1 is purged", command)
	o.wantOnePurge("worker-1", "operator", journal.OutcomeDone)
}
