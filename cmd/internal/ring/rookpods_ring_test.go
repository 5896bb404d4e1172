package ring

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsrookpods "github.com/replicatedhq/ekco/actions/rookpods"
	"github.com/replicatedhq/ekco/fsm"
	fsmrookpods "github.com/replicatedhq/ekco/fsm/rookpods"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observersrookpods "github.com/replicatedhq/ekco/observers/rookpods"
)

var (
	rookMDS = journal.RookMDS("rook-shared-fs")
	rookOSD = journal.RookWorkload(journal.KindDeployment, "rook-ceph-osd-0")
)

// rookPods is the capability as the product has it, with all of it configured.
func rookPods(e *estate) Capability { return rookPodsOr(e, "") }

// rookPodsOr is the capability with the setting for which it is off, unless that is empty.
func rookPodsOr(e *estate, off string) Capability { return rookPodsOver(rook.NewReadCache(e), e, off) }

// rookPodsOver is the capability that looks at those objects.
func rookPodsOver(objects *rook.ReadCache, e *estate, off string) Capability {
	pods, nudge := rook.NewPods(objects), &observers.Nudge{}
	return Capability{
		Fsm: fsmrookpods.Capability(), Words: fsmrookpods.Words,
		Policy: fsmrookpods.Policy{Class: rook.NodeCritical, CSIOff: off, MDSOff: off, PriorityOff: off},
		Actions: func(kube.API) []actions.Definition {
			return actionsrookpods.New(actionsrookpods.Dependencies{Pods: pods, Nodes: e, Changed: nudge.Look})
		},
		Sources: func(s *fsm.State) []observers.Source {
			return nudge.Over(observersrookpods.New(observersrookpods.Options{
				Pods: rook.NewPods(objects.MaxAge(75 * time.Second)), Filesystem: "rook-shared-fs", CSIOff: off, MDSOff: off, PriorityOff: off,
				Known: func(kinds ...string) map[journal.Subject]journal.RookPodsFacts { return fsmrookpods.Known(s, kinds...) },
			})...)
		},
	}
}

const (
	mdsSelector = `"labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["rook-ceph-mds"]}]}`
	oneNodeFS   = `{"spec":{"metadataServer":{"placement":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
		{"weight":100,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname",` + mdsSelector + `}},{"weight":100,"podAffinityTerm":{"topologyKey":"topology.kubernetes.io/zone",` + mdsSelector + `}}]}}}}}`
	oldOSD = `{"metadata":{"labels":{"app":"rook-ceph-osd"}},"spec":{"replicas":1,"template":{"spec":{}}},
		"status":{"observedGeneration":9,"replicas":1,"updatedReplicas":1,"availableReplicas":1}}`
)

// installRookPods installs what the things of the kinds need, and has Rook do what follows from
// each change.
func (e *estate) installRookPods(of ...journal.Subject) {
	e.policy.enginePolicy = rookPods(e).policyIn(e.policy.enginePolicy)
	e.objects.Put(rook.OperatorRef(), `{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:v1.10.0"}]}}}}`)
	e.objects.Put(rook.ResourceRef(journal.RookCluster), `{"spec":{}}`)
	for _, of := range of {
		e.objects.Put(rook.PodsRef(of), map[string]string{
			journal.RookOperatorConfig.Kind: `{"data":{"MINE":"1"}}`, journal.KindCephMDS: oneNodeFS, journal.KindDeployment: oldOSD,
		}[of.Kind])
	}
	for name, node := range map[string]string{"mds-a": "a", "mds-b": "b"} {
		e.objects.Put(kube.Ref{Version: "v1", Resource: "pods", Namespace: rook.Namespace, Name: name},
			`{"metadata":{"name":"`+name+`","labels":{"app":"rook-ceph-mds","rook_file_system":"rook-shared-fs"}},"spec":{"nodeName":"`+node+`"},
			"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	}
}

// setsCSI reports whether the ConfigMap has EKCO's resources.
func (e *estate) setsCSI() bool {
	data, _ := e.objects.Object(rook.PodsRef(journal.RookOperatorConfig))["data"].(map[string]any)
	return data["CSI_RBD_PLUGIN_RESOURCE"] == rook.CSIResources("CSI_RBD_PLUGIN_RESOURCE")
}

func TestRooksPodsFollowTheNodes(t *testing.T) {
	inAnEstate(t, "", rookPods, func(e *estate) {
		e.installRookPods(journal.RookOperatorConfig, rookMDS, rookOSD)
		in := e.live(nil)
		pass(5 * time.Minute)
		if got := strings.Join(e.changes(), ", "); got != "create priorityclasses node-critical, update deployments rook-ceph/rook-ceph-osd-0" {
			t.Fatalf("with one node: %s", got)
		}
		e.join("b")
		e.takes(2*time.Second, func() bool { return len(e.changes()) == 3 })
		if e.setsCSI() {
			t.Error("with two nodes the resources are set")
		}
		e.join("c")
		e.takes(2*time.Second, e.setsCSI)
		pass(5 * time.Minute)
		events, changes := e.state().Seq, len(e.changes())
		pass(time.Hour)
		if n, m := e.state().Seq-events, len(e.changes())-changes; n != 0 || m != 0 || changes != 4 {
			t.Errorf("at rest %d events and %d changes after %q:\n%s", n, m, e.changes(), e.history("table"))
		}
		e.says("the status", e.status(in, "wide"), "rook-ceph/rook-ceph-mds-rook-shared-fs", "InStep", "MDS run on a, b", "priority class node-critical")
		e.says("the history", e.history("tree"), "set-priority-class rook-ceph/rook-ceph-osd-0: done",
			"spread-mds rook-ceph/rook-ceph-mds-rook-shared-fs: done", "set-csi-resources rook-ceph/rook-ceph-operator-config: done")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAUsersResourcesArePutBackAFewTimesAndThenHeld: whatever they are.
func TestAUsersResourcesArePutBackAFewTimesAndThenHeld(t *testing.T) {
	inAnEstate(t, "", rookPods, func(e *estate) {
		e.installRookPods(journal.RookOperatorConfig)
		e.join("b", "c")
		in := e.live(nil)
		for _, mine := range []string{"- name: mine\n", "[]"} {
			e.takes(2*time.Minute, e.setsCSI)
			pass(2 * time.Minute)
			e.objects.Edit(rook.PodsRef(journal.RookOperatorConfig), func(object map[string]any) {
				object["data"].(map[string]any)["CSI_RBD_PLUGIN_RESOURCE"] = mine
			})
		}
		pass(10 * time.Minute)
		if changes := e.changes(); e.setsCSI() || len(changes) > 3 {
			t.Errorf("it is set again: %q", changes)
		}
		e.says("the status", e.status(in, "wide"), "Contested", "another program keeps changing the resources of Ceph's CSI pods in ConfigMap rook-ceph/rook-ceph-operator-config back")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutRookItsPodsAreQuiet(t *testing.T) {
	inAnEstate(t, "", rookPods, func(e *estate) {
		e.policy.enginePolicy = rookPods(e).policyIn(e.policy.enginePolicy)
		e.join("b", "c")
		in := e.live(nil)
		pass(5 * time.Minute)
		events := e.state().Seq
		pass(time.Hour)
		if state := e.state(); state.Seq != events || len(state.Refusals) != 0 {
			t.Errorf("%d events, refused is %+v", state.Seq-events, state.Refusals)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestRooksPodsAreLeftAloneOnceRookIsGone: nothing is held, and nothing retried, though objects
// of it stay for long.
func TestRooksPodsAreLeftAloneOnceRookIsGone(t *testing.T) {
	inAnEstate(t, "", rookPods, func(e *estate) {
		e.installRookPods(journal.RookOperatorConfig, rookMDS)
		in := e.live(nil)
		pass(5 * time.Minute)
		e.objects.Remove(rook.ResourceRef(journal.RookCluster))
		pass(5 * time.Minute)
		e.join("b", "c")
		pass(time.Hour)
		if state := e.state(); len(state.OpenActions()) != 0 || len(state.Refusals) != 0 || len(e.changes()) != 0 {
			t.Errorf("open are %+v, refused is %+v, changed is %q", state.OpenActions(), state.Refusals, e.changes())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatRookGivesItsPodsIsChangedOnceHoweverOftenEKCOIsKilled(t *testing.T) {
	for kind, of := range map[journal.ActionKind]journal.Subject{
		journal.ActionSetCSIResources: journal.RookOperatorConfig, journal.ActionSpreadMDS: rookMDS, journal.ActionSetPriorityClass: rookOSD,
	} {
		t.Run(string(kind), func(t *testing.T) {
			stories(t, kind, rookPods, func(e *estate, arm func(*incarnation)) *incarnation {
				e.installRookPods(of)
				e.join("b", "c")
				first := e.live(arm)
				pass(5 * time.Minute)
				last := e.restarts(first, first)
				if err := last.stop(); err != nil {
					e.t.Error(err)
				}
				return first
			})
		})
	}
}

// TestTwoCapabilitiesReadEachOfRooksObjectsOnceAnIntervalTogether, and each what EKCO changed at once.
func TestTwoCapabilitiesReadEachOfRooksObjectsOnceAnIntervalTogether(t *testing.T) {
	all := cephs{}
	inAnEstate(t, "", all.capability, func(e *estate) {
		all.installRook(e)
		e.policy.enginePolicy = rookPods(e).policyIn(e.policy.enginePolicy)
		e.list = func() Capabilities {
			objects := rook.NewReadCache(e)
			return Capabilities{e.nodes(), all.capabilityOver(objects, e, ""), rookPodsOver(objects, e, "")}
		}
		e.objects.Put(rook.PodsRef(journal.RookOperatorConfig), `{}`)
		e.objects.Put(rook.PodsRef(rookMDS), oneNodeFS)
		in := e.live(nil)
		pass(5 * time.Minute)
		before := map[string]int{}
		read := []string{"get cephclusters", "get cephfilesystems", "get cephblockpools", "get deployments", "get configmaps"}
		for _, call := range read {
			before[call] = e.objects.Calls(call)
		}
		pass(100 * time.Minute)
		for _, call := range read {
			if n := e.objects.Calls(call) - before[call]; n < 90 || n > 112 {
				t.Errorf("%s: %d times in 100 minutes", call, n)
			}
		}
		spread := func() bool {
			placement := e.specOf(rook.PodsRef(rookMDS))["metadataServer"].(map[string]any)["placement"].(map[string]any)
			return placement["podAntiAffinity"].(map[string]any)["requiredDuringSchedulingIgnoredDuringExecution"] != nil
		}
		e.join("b")
		e.takes(2*time.Second, spread)
		pass(10 * time.Minute)
		e.objects.Put(rook.PodsRef(rookMDS), oneNodeFS) // as the installer does
		e.takes(12*time.Minute, spread)                 // at once, or after the rest of an action that ends by that
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
