package ring

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionskotsadm "github.com/replicatedhq/ekco/actions/kotsadm"
	"github.com/replicatedhq/ekco/fsm"
	fsmkotsadm "github.com/replicatedhq/ekco/fsm/kotsadm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// rqlite is the capability as the product has it.
func rqlite(e *estate) Capability { return rqliteOr(e, "") }

// rqliteOr is the capability with the setting for which it is off, unless that is empty.
func rqliteOr(e *estate, off string) Capability {
	capability := Capability{Fsm: fsmkotsadm.Capability(), Policy: fsmkotsadm.Policy{Enabled: off == ""}, Words: fsmkotsadm.Words}
	return WithObjects(capability, actionskotsadm.Object(e), off, func(_ kube.API, changed func()) actions.Definition {
		return actionskotsadm.New(e, time.Minute, changed)
	}, journal.KotsadmDatabase)
}

const singleRqlite = `{"spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"rqlite:8","args":["-bootstrap-expect=1"]}]}}}}`

// controlled makes the replicas ready some time after each change.
func (e *estate) controlled() {
	e.objects.AfterEffect = func(string) {
		time.AfterFunc(20*time.Second, func() {
			e.objects.Edit(actionskotsadm.Ref, func(object map[string]any) {
				replicas := object["spec"].(map[string]any)["replicas"]
				object["status"] = map[string]any{
					"observedGeneration": object["metadata"].(map[string]any)["generation"],
					"replicas":           replicas, "readyReplicas": replicas, "updatedReplicas": replicas,
				}
			})
		})
	}
}

func inKotsadm(t *testing.T, test func(*estate)) {
	inAnEstate(t, journal.ActionScaleKotsadm, rqlite, func(e *estate) {
		e.policy.enginePolicy = rqlite(nil).policyIn(e.policy.enginePolicy)
		e.controlled()
		test(e)
	})
}

// policyIn adds the capability's policy to the engine's.
func (c Capability) policyIn(engine fsm.Policy) fsm.Policy {
	return engine.With(c.Fsm.Machine.Name(), c.Policy)
}

func TestTheDatabaseGrowsWithTheThirdNodeAndAgainAfterAReinstall(t *testing.T) {
	inKotsadm(t, func(e *estate) {
		e.objects.Put(actionskotsadm.Ref, singleRqlite)
		e.join("b")
		in := e.live(nil)
		pass(5 * time.Minute)
		if n := len(e.changes()); n != 0 {
			t.Fatalf("with two nodes %d changes", n)
		}
		e.join("c")
		e.takes(2*time.Second, func() bool { return e.replicas(actionskotsadm.Ref) == 3 })
		pass(5 * time.Minute)
		e.says("the status", e.status(in, "wide"), "default/kotsadm-rqlite", "HA")
		e.says("the history", e.history("tree"), "scale-kotsadm default/kotsadm-rqlite: done",
			"3 nodes are ready, so it should have 3 replicas, and has 1 (-bootstrap-expect=1)", "scale", "await-replicas")
		e.objects.Put(actionskotsadm.Ref, singleRqlite)
		e.takes(2*time.Minute, func() bool { return e.replicas(actionskotsadm.Ref) == 3 })
		pass(5 * time.Minute)
		if n := len(e.changes()); n != 2 {
			t.Errorf("%d changes", n)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAReinstallWhileReplicasAreAwaitedIsScaledAgain: the action that waits ends, and
// another one begins.
func TestAReinstallWhileReplicasAreAwaitedIsScaledAgain(t *testing.T) {
	inKotsadm(t, func(e *estate) {
		e.objects.AfterEffect = nil // they do not get ready
		e.objects.Put(actionskotsadm.Ref, singleRqlite)
		e.join("b", "c")
		in := e.live(nil)
		pass(5 * time.Minute)
		e.says("the status", e.status(in, "wide"), "KotsadmReady", "the StatefulSet controller has not seen the change yet")
		e.controlled()
		e.objects.Put(actionskotsadm.Ref, singleRqlite)
		e.takes(2*time.Minute, func() bool { return e.replicas(actionskotsadm.Ref) == 3 })
		pass(5 * time.Minute)
		if open := e.state().OpenActions(); len(open) != 0 || len(e.changes()) != 2 {
			t.Errorf("open are %+v, changed %q", open, e.changes())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestSwitchedOffTheDatabaseEndsInTheJournalAndIsBackWhenItIsSwitchedOn: its last state
// would stand in the status for ever.
func TestSwitchedOffTheDatabaseEndsInTheJournalAndIsBackWhenItIsSwitchedOn(t *testing.T) {
	inKotsadm(t, func(e *estate) {
		live := func(off string) *incarnation {
			e.list = func() Capabilities { return Capabilities{e.nodes(), rqliteOr(e, off)} }
			e.policy.enginePolicy = rqliteOr(nil, off).policyIn(e.policy.enginePolicy)
			in := e.live(nil)
			pass(5 * time.Minute)
			return in
		}
		stop := func(in *incarnation) {
			if err := in.stop(); err != nil {
				t.Error(err)
			}
			e.closeJournal()
			e.openJournal("journal.db")
		}
		e.objects.Put(actionskotsadm.Ref, singleRqlite)
		in := live("")
		e.says("the status", e.status(in, "wide"), "default/kotsadm-rqlite", "Single")
		stop(in)
		e.join("b", "c")
		in = live("enable_ha_kotsadm is off")
		e.says("the status", e.status(in, "wide"), "default/kotsadm-rqlite", "Removed")
		e.says("the history", e.history("tree"), "Single → Removed: enable_ha_kotsadm is off")
		read := e.objects.Calls("get statefulsets")
		pass(time.Hour)
		if n := e.objects.Calls("get statefulsets") - read; n != 0 || len(e.changes()) != 0 {
			t.Errorf("switched off it is read %d times, changed are %q", n, e.changes())
		}
		stop(in)
		in = live("")
		e.says("the history", e.history("tree"), "Removed → Single: it is back", "scale-kotsadm default/kotsadm-rqlite: done")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
