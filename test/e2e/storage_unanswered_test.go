package e2e

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/kurl"
)

// unanswered loses the tools pod with one of two nodes, and has no mgr.
func (w *wholeCluster) unanswered(t *testing.T) {
	const withTools, other = "worker-1", "worker-2"
	w.moveTools(withTools)
	w.waitTools(withTools)
	before := w.look()
	w.ceph.StopMgr()
	w.lose(withTools, other)
	w.waitUnreachable(withTools)
	w.waitUnreachable(other)
	w.holdsAutomatically(t, before, withTools, other)
	w.finishesWhenCephAnswers(t, before, withTools, other)
}

// holdsAutomatically checks that automatic purges wait before their first steps:
// for the plan without a tools pod, for an answer without a mgr.
func (w *wholeCluster) holdsAutomatically(t *testing.T, before world, nodes ...string) {
	t.Helper()
	o := w.install(t, map[string]string{"purge_dead_nodes": "true", "clear_dead_nodes": "false"})
	o.startReady()
	mark := w.exec.mark()
	w.waitHeld(o, "Plan")
	w.moveTools(toolsNode)
	w.waitHeld(o, purge.CephAnswers)
	w.want(t, before)
	if changed := w.exec.changes(mark); len(changed) > 0 {
		t.Errorf("a purge that is held changed Ceph: %q", changed)
	}
	for _, node := range nodes {
		if started := o.events("--node", node, "--type", "step.started"); len(started) > 0 {
			t.Errorf("the purge of %s is held and started %d steps", node, len(started))
		}
	}
	o.running.Stop(await.HangTimeout)
}

// waitHeld waits until a purge is held by a preflight.
func (w *wholeCluster) waitHeld(o *operator, preflight string) {
	w.t.Helper()
	eventually(w.t, await.HangTimeout, "a purge is held by "+preflight, func() (bool, string) {
		for _, action := range o.status().Actions {
			for _, hold := range action.Holds {
				if action.Kind == journal.ActionPurgeNode && hold.Preflight == preflight {
					return true, ""
				}
			}
		}
		return false, o.shown()
	})
}

// finishesWhenCephAnswers purges two nodes by hand, one without a mgr, and one
// without a tools pod too. What needs Ceph is kept, also across a kill, until
// both are back.
func (w *wholeCluster) finishesWhenCephAnswers(t *testing.T, before world, noTools, noMgr string) {
	t.Helper()
	o := w.install(t, nil)
	p := o.startReady()
	w.waitLost(o, noMgr)
	w.waitLost(o, noTools)
	mark := w.exec.mark()
	first := child.Start(t, binaries.ekco, "purge-node", noMgr, "--journal", o.journal, "--config", o.config)
	w.waitDeferred(o, noMgr, "purge-osd")
	w.kubectl("delete", "deployment", "-n", "rook-ceph", kurl.ToolsPod, "--cascade=foreground")
	second := child.Start(t, binaries.ekco, "purge-node", noTools, "--journal", o.journal, "--config", o.config)
	for _, asked := range []*child.Process{first, second} {
		code, output := asked.Wait(await.HangTimeout), asked.Output.String()
		t.Logf("purge-node while Ceph does not answer:\n%s", output)
		if code != 0 || !strings.Contains(output, "warning: ") || !strings.Contains(output, "EKCO finishes") {
			t.Errorf("the command exits %d and does not say what is left:\n%s", code, output)
		}
	}
	open := before.withoutKubernetes(noMgr).withoutKubernetes(noTools)
	p.Kill()
	o.startReady()
	w.waitDeferred(o, noMgr, "purge-osd")
	w.waitDeferred(o, noTools, "find-osds")
	w.want(t, open)
	if changed := w.exec.changes(mark); len(changed) > 0 {
		t.Errorf("Ceph was changed although it did not answer: %q", changed)
	}

	w.moveTools(toolsNode)
	w.ceph.StartMgr()
	w.waitPurged(o, noMgr)
	w.waitPurged(o, noTools)
	after := before.without(noMgr).without(noTools)
	w.wantPurged(o, noMgr, after)
	w.wantPurged(o, noTools, after)
}

// waitDeferred waits until a purge waits for Ceph alone, and status says which
// step does.
func (w *wholeCluster) waitDeferred(o *operator, node, step string) {
	w.t.Helper()
	eventually(w.t, await.HangTimeout, "the purge of "+node+" waits for Ceph alone", func() (bool, string) {
		for _, action := range o.status().Actions {
			hold, deferred := action.Deferred()
			if action.Subject.Name == node && deferred && hold.Preflight == purge.CephAnswers {
				return true, ""
			}
		}
		return false, o.shown()
	})
	shown := o.mustEkco("status")
	for _, says := range []string{node, step, purge.CephAnswers} {
		if !strings.Contains(shown, says) {
			w.t.Errorf("status does not say %q:\n%s", says, shown)
		}
	}
}
