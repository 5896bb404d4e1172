package rookpods

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmrookpods "github.com/replicatedhq/ekco/fsm/rookpods"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// estate is a Rook with three ready nodes, whose operator and controllers do some time after
// each change what follows from it.
type estate struct {
	objects *kubesim.Objects
	kube    *kubesim.Cluster
	subject journal.Subject
	looks   int
	// follows is that time; zero means never.
	follows time.Duration
}

const (
	term       = `"labelSelector":{"matchExpressions":[{"key":"app","operator":"In","values":["rook-ceph-mds"]}]}`
	filesystem = `{"spec":{"metadataServer":{"placement":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[
		{"weight":100,"podAffinityTerm":{"topologyKey":"kubernetes.io/hostname",` + term + `}},{"weight":50,"podAffinityTerm":{"topologyKey":"topology.kubernetes.io/zone",` + term + `}}]}}}}}`
	osd = `{"metadata":{"labels":{"app":"rook-ceph-osd"}},"spec":{"replicas":1,"template":{"spec":{}}},
		"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"availableReplicas":1}}`
)

var (
	sharedMDS = journal.RookMDS("rook-shared-fs")
	osd0      = journal.RookWorkload(journal.KindDeployment, "rook-ceph-osd-0")
)

// contents are the objects of things.
var contents = map[string]string{
	journal.RookOperatorConfig.Kind: `{"data":{"MINE":"1"}}`, journal.KindCephMDS: filesystem, journal.KindDeployment: osd, journal.KindDaemonSet: strings.Replace(osd, "osd", "agent", 1),
}

func installed(of journal.Subject) *estate {
	e := &estate{objects: kubesim.NewObjects(), kube: kubesim.New(), subject: of, follows: 20 * time.Second}
	e.objects.Put(rook.OperatorRef(), `{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:v1.10.0"}]}}}}`)
	e.objects.Put(rook.ResourceRef(journal.RookCluster), `{"spec":{}}`)
	e.subject.UID = e.objects.Put(rook.PodsRef(of), contents[of.Kind])
	e.objects.Put(rook.NamespaceRef(), `{}`)
	if of.Kind == journal.KindCephMDS {
		e.subject.UID = journal.MDSUID(e.subject.UID)
	}
	e.runMDS("a", "n1")
	e.runMDS("b", "n1")
	for _, name := range []string{"n1", "n2", "n3"} {
		e.kube.AddNode(name, journal.RoleWorker)
	}
	e.objects.AfterEffect = func(string) {
		if e.follows > 0 {
			time.AfterFunc(e.follows, e.follow)
		}
	}
	return e
}

// runMDS has an MDS run on a node.
func (e *estate) runMDS(name, node string) {
	e.objects.Put(kube.Ref{Version: "v1", Resource: "pods", Namespace: rook.Namespace, Name: name},
		`{"metadata":{"name":"`+name+`","labels":{"app":"rook-ceph-mds","rook_file_system":"rook-shared-fs"}},"spec":{"nodeName":"`+node+`"},
		"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
}

// follow is what the operator and the controllers do.
func (e *estate) follow() {
	ref := rook.PodsRef(e.subject)
	if e.objects.Object(ref) == nil {
		return
	}
	if e.subject.Kind == journal.KindCephMDS {
		e.runMDS("b", "n2")
		return
	}
	e.objects.Edit(ref, func(object map[string]any) {
		if status, is := object["status"].(map[string]any); is {
			status["observedGeneration"] = object["metadata"].(map[string]any)["generation"]
		}
	})
}

func (e *estate) definitions() []actions.Definition {
	return New(Dependencies{Pods: rook.NewPods(e.objects), Nodes: e.kube, Changed: func() { e.looks++ }})
}

// input is what EKCO asks for about a thing.
func (e *estate) input() (journal.ActionKind, journal.RookPodsInput) {
	switch e.subject.Kind {
	case journal.RookOperatorConfig.Kind:
		return journal.ActionSetCSIResources, journal.RookPodsInput{Keys: rook.CSIKeys(), Nodes: 3}
	case journal.KindCephMDS:
		return journal.ActionSpreadMDS, journal.RookPodsInput{Nodes: 2}
	}
	return journal.ActionSetPriorityClass, journal.RookPodsInput{Class: rook.NodeCritical, Daemon: "osd"}
}

// onItsTerms has the actions of a world take the domains that they name.
func onItsTerms(w *actionstest.World) {
	w.T.Helper()
	terms, err := fsm.TermsByKind(fsmrookpods.Capability())
	if err != nil {
		w.T.Fatal(err)
	}
	for kind, of := range terms {
		of.Rules = actionstest.Rules()
		terms[kind] = of
	}
	w.Terms = terms
}

func (e *estate) ask(w *actionstest.World) { e.askFor(w, false) }

func (e *estate) askFor(w *actionstest.World, dryRun bool) {
	w.T.Helper()
	onItsTerms(w)
	kind, input := e.input()
	w.Request(e.subject, journal.ActionRequested{Kind: kind, Input: input, DryRun: dryRun})
}

// outcome is what has become of it: its resource version tells how often anything changed.
func (e *estate) outcome() string {
	object := e.objects.Object(rook.PodsRef(e.subject))
	if object == nil {
		return "gone"
	}
	content, err := json.Marshal([]any{object["data"], object["spec"]})
	if err != nil {
		panic(err)
	}
	classes := 0
	if e.objects.Object(rook.PriorityClassRef(rook.NodeCritical)) != nil {
		classes = 1
	}
	changes := 0
	for _, effect := range e.objects.Effects() {
		if effect.Changed {
			changes++
		}
	}
	return fmt.Sprintf("%s, %d classes, %d changes", content, classes, changes)
}

// scene changes a thing. meanwhile, unless nil, is called as something is about to be changed.
func scene(of journal.Subject, points int, meanwhile func(e *estate, n int)) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(w *actionstest.World) actionstest.Stage {
		e, n := installed(of), 0
		e.objects.BeforeEffect = func(string) {
			if n++; meanwhile != nil {
				meanwhile(e, n)
			}
		}
		e.ask(w)
		return actionstest.Stage{
			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(e.definitions()...) },
			Outcome: e.outcome,
		}
	}}
}

func scenes() actionstest.Scenes {
	return actionstest.Scenes{
		"resources": scene(journal.RookOperatorConfig, 8, nil),
		"resources of a map that changes": scene(journal.RookOperatorConfig, 8, func(e *estate, n int) {
			if n == 1 {
				e.objects.Edit(rook.PodsRef(e.subject), func(object map[string]any) { object["data"] = map[string]any{"OTHER": "2"} })
			}
		}),
		"MDS": scene(sharedMDS, 12, nil),
		"MDS that somebody else places": scene(sharedMDS, 8, func(e *estate, n int) {
			if n == 1 {
				e.objects.Edit(rook.PodsRef(e.subject), func(object map[string]any) { object["spec"] = map[string]any{} })
			}
		}),
		"a priority class of a Deployment": scene(osd0, 16, nil),
		"a priority class of a DaemonSet":  scene(journal.RookAgent, 16, nil),
	}
}

func TestTheCrashMatrix(t *testing.T) { scenes().Run(t) }

// TestTwoEKCOsChangeOnce: each has a journal of its own, and both have read the object before
// either changes it.
func TestTwoEKCOsChangeOnce(t *testing.T) {
	for _, of := range []journal.Subject{journal.RookOperatorConfig, sharedMDS, osd0} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := installed(of)
			e.objects.SetLatency(time.Second)
			other := actionstest.NewWorld(w.T)
			e.ask(w)
			e.ask(other)
			second := other.Start(other.Config(e.definitions()))
			w.RunToEnd(w.Config(e.definitions()))
			second.End()
			changed := 0
			for _, effect := range e.objects.Effects() {
				if effect.Changed && !strings.HasPrefix(effect.Name, "create ") {
					changed++
				}
			}
			if w.LastLine() != "ended done" || other.LastLine() != "ended done" || changed != 1 || e.looks == 0 {
				t.Errorf("%s: %d changes: %q, %q", of.Name, changed, w.Story(), other.Story())
			}
		})
	}
}

// held runs an action until it is held by the preflight, ends that, and returns the reason.
func held(t *testing.T, of journal.Subject, step, preflight string, prepare, end func(*estate)) (reason string) {
	t.Helper()
	actionstest.InBubble(t, func(w *actionstest.World) {
		e := installed(of)
		e.follows = 0
		prepare(e)
		e.ask(w)
		r := w.Start(w.Config(e.definitions()))
		w.Pass(30 * time.Second)
		if occupied := w.Occupied(); len(occupied) != 0 {
			t.Errorf("while it waits it occupies %v", occupied)
		}
		w.Pass(20 * time.Minute)
		hold := w.Record().Holds[step]
		if reason = hold.Reason; hold.Preflight != preflight {
			t.Errorf("held by %+v; the story is %q", w.Record().Holds, w.Story())
		}
		events := len(w.Events())
		w.Pass(10 * time.Hour)
		if n := len(w.Events()) - events; n > 0 {
			t.Errorf("%d events while nothing changes", n)
		}
		end(e)
		r.End()
		if w.LastLine() != "ended done" {
			t.Errorf("it ends with %q", w.Story())
		}
	})
	return reason
}

func TestMDSThatStayOnOneHostHoldTheActionWithWhatIsKnownOfThem(t *testing.T) {
	reason := held(t, sharedMDS, journal.StepAwaitMDSHosts, MDSOnTwoHosts, func(*estate) {}, (*estate).follow)
	if reason != "MDS run on 1 host (n1), want 2: a runs on n1; b runs on n1" {
		t.Errorf("held for: %s", reason)
	}
}

func TestAWorkloadThatIsNotRolledOutHoldsTheAction(t *testing.T) {
	reason := held(t, osd0, journal.StepAwaitRolledOut, WorkloadRolledOut, func(*estate) {}, (*estate).follow)
	if !strings.Contains(reason, "its controller has not seen the change") {
		t.Errorf("held for: %s", reason)
	}
}

func TestTheNextDeploymentWaitsForTheFormer(t *testing.T) {
	former := rook.PodsRef(journal.RookWorkload(journal.KindDeployment, "rook-ceph-osd-1"))
	reason := held(t, osd0, journal.StepSetRookPods, FormerRolledOut, func(e *estate) {
		e.follows = time.Second
		e.objects.Put(former, strings.Replace(osd, `"observedGeneration":1`, `"observedGeneration":0`, 1))
	}, func(e *estate) { e.objects.Put(former, osd) })
	if reason != "waits for another Deployment of the same daemon: Deployment rook-ceph/rook-ceph-osd-1 is not rolled out: its controller has not seen the change yet" {
		t.Errorf("held for: %s", reason)
	}
}

// checks expects that of a preflight.
func (e *estate) checks(t *testing.T, name string, input journal.RookPodsInput, kind actions.VerdictKind, key string) {
	t.Helper()
	record := journal.ActionRecord{Subject: e.subject}
	record.Kind, _ = e.input()
	record.Request.Input = input
	verdict := e.definitions()[0].Preflights[name].Check(t.Context(), record)
	if verdict.Kind != kind || verdict.Key != key {
		t.Errorf("%s says %+v, want %s about %q", name, verdict, kind, key)
	}
}

func TestWhatIsNotWhatItWasIsLeftAlone(t *testing.T) {
	for of, edited := range map[journal.Subject]string{sharedMDS: `{}`, osd0: `{"template":{"spec":{"priorityClassName":"mine"}}}`} {
		e := installed(of)
		_, input := e.input()
		e.checks(t, RookPodsUnchanged, input, actions.VerdictPass, "")
		e.objects.Edit(rook.PodsRef(of), func(object map[string]any) {
			var spec map[string]any
			if err := json.Unmarshal([]byte(edited), &spec); err != nil {
				t.Fatal(err)
			}
			object["spec"] = spec
		})
		e.checks(t, RookPodsUnchanged, input, actions.VerdictAbandon, "moved")
		e.objects.Forbid("get cephclusters")
		e.checks(t, RookPodsUnchanged, input, actions.VerdictHold, "unread")
		e.objects.Allow("get cephclusters")
		e.objects.Remove(rook.PodsRef(of))
		e.objects.Put(rook.PodsRef(of), contents[of.Kind])
		e.checks(t, RookPodsUnchanged, input, actions.VerdictAbandon, "replaced")
		e.objects.Remove(rook.ResourceRef(journal.RookCluster))
		e.checks(t, RookPodsUnchanged, input, actions.VerdictAbandon, "gone")
	}
}

func TestNodesAreCountedAnew(t *testing.T) {
	e := installed(journal.RookOperatorConfig)
	e.checks(t, EnoughNodes, journal.RookPodsInput{Nodes: 3}, actions.VerdictPass, "")
	e.kube.LoseNode("n3")
	e.checks(t, EnoughNodes, journal.RookPodsInput{Nodes: 3}, actions.VerdictPass, "") // it counts all the same
	e.kube.RemoveNode("n3")
	e.checks(t, EnoughNodes, journal.RookPodsInput{Nodes: 3}, actions.VerdictAbandon, "nodes")
	e.kube.Forbid(kubesim.ListNodes)
	e.checks(t, EnoughNodes, journal.RookPodsInput{Nodes: 3}, actions.VerdictHold, "nodes unread")

	e = installed(sharedMDS)
	e.kube.LoseNode("n3")
	e.checks(t, EnoughNodes, journal.RookPodsInput{Nodes: 2}, actions.VerdictPass, "")
	e.kube.LoseNode("n2")
	e.checks(t, EnoughNodes, journal.RookPodsInput{Nodes: 2}, actions.VerdictAbandon, "nodes")
}

func TestAPriorityClassOfAUsersMustBeThere(t *testing.T) {
	e := installed(osd0)
	e.checks(t, PriorityClassThere, journal.RookPodsInput{Class: rook.NodeCritical}, actions.VerdictPass, "")
	e.checks(t, PriorityClassThere, journal.RookPodsInput{Class: "mine"}, actions.VerdictHold, "class missing")
	e.objects.Put(rook.PriorityClassRef("mine"), `{"value":1}`)
	e.checks(t, PriorityClassThere, journal.RookPodsInput{Class: "mine"}, actions.VerdictPass, "")
	e.objects.Forbid("get priorityclasses mine")
	e.checks(t, PriorityClassThere, journal.RookPodsInput{Class: "mine"}, actions.VerdictHold, "class unread")
}

// TestWhatIsUndoneWhileItIsAwaitedEndsTheAction: whether it is done again is decided anew.
func TestWhatIsUndoneWhileItIsAwaitedEndsTheAction(t *testing.T) {
	for of, reason := range map[journal.Subject]string{sharedMDS: "another client placed the MDS as on a single node again", osd0: "another client removed the priority class again"} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := installed(of)
			e.follows = 0
			e.ask(w)
			r := w.Start(w.Config(e.definitions()))
			w.Pass(time.Minute)
			e.objects.Put(rook.PodsRef(of), contents[of.Kind])
			r.End()
			events := w.Events()
			if last := string(events[len(events)-1].Payload); !strings.Contains(last, `"abandoned"`) || !strings.Contains(last, reason) || e.looks != 2 {
				t.Errorf("%d looks; it ends with %s", e.looks, last)
			}
		})
	}
}

func TestADryRunChangesNothingAndWaitsForNothing(t *testing.T) {
	for _, of := range []journal.Subject{journal.RookOperatorConfig, sharedMDS, osd0} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			e := installed(of)
			e.askFor(w, true)
			w.RunToEnd(w.Config(e.definitions()))
			if w.LastLine() != "ended dry-run" || len(e.objects.Effects()) != 0 {
				t.Errorf("%s; %v", w.LastLine(), e.objects.Effects())
			}
		})
	}
}

func TestOnlyWhatRestartsDaemonsTakesTheStorageAndOnlyToChangeIt(t *testing.T) {
	for of, want := range map[journal.Subject][]string{
		journal.RookOperatorConfig: {"set []"}, sharedMDS: {"set [storage]", "await-hosts []"},
		osd0: {"ensure-class []", "set [storage]", "await-rollout []"},
	} {
		e, record := installed(of), journal.ActionRecord{}
		var input journal.RookPodsInput
		record.Kind, input = e.input()
		got, err := plan(context.Background(), record, input)
		var steps []string
		for _, step := range got.Steps {
			steps = append(steps, fmt.Sprint(step.ID, " ", step.Domains))
		}
		if err != nil || !slices.Equal(steps, want) {
			t.Errorf("%s: %v: the plan is %q", of.Name, err, steps)
		}
		if _, err := plan(context.Background(), record, journal.RookPodsInput{}); err == nil && of != sharedMDS {
			t.Errorf("%s: there is a plan for nothing", of.Name)
		}
	}
}

var _ Nodes = kube.API(nil)

// TestACancelDoesNotWaitForPods, which may take minutes.
func TestACancelDoesNotWaitForPods(t *testing.T) {
	for name, test := range map[string]struct {
		of     journal.Subject
		awaits string
	}{"the MDS": {sharedMDS, journal.StepAwaitMDSHosts}, "a workload": {osd0, journal.StepAwaitRolledOut}} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := installed(test.of)
				e.follows = 0
				e.ask(w)
				r := w.Start(w.Config(e.definitions()))
				w.Pass(time.Minute)
				if step := w.Record().Steps[test.awaits]; !step.Open {
					t.Errorf("after a minute it is %+v: %q", step, w.Story())
				}
				w.Cancel(r)
				if took := r.End(); took > time.Second || !strings.HasPrefix(w.LastLine(), "ended cancelled") {
					t.Errorf("it took %s: %q", took, w.Story())
				}
			})
		})
	}
}
