package monitoring

import (
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	fsmmonitoring "github.com/replicatedhq/ekco/fsm/monitoring"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scaled begins with an object of that content and a request for so many replicas; then
// may change the world as the patch arrives.
func scaled(content string, replicas int, meanwhile func(objects *kubesim.Objects, ref kube.Ref, patches int)) actionstest.Scene {
	return actionstest.Scene{Points: 8, Set: func(w *actionstest.World) actionstest.Stage {
		objects, of := kubesim.NewObjects(), journal.MonitoringPrometheus
		of.UID = objects.Put(Ref(of), content)
		cluster, patches := nodes(replicas), 0
		objects.BeforeEffect = func(string) {
			if patches++; meanwhile != nil {
				meanwhile(objects, Ref(of), patches)
			}
		}
		w.Request(of, journal.ActionRequested{
			Kind: journal.ActionScaleMonitoring, Input: journal.MonitoringInput{Replicas: replicas, Nodes: replicas},
		})
		return actionstest.Stage{
			Kinds: func(f *actionstest.Fuse) []actions.Definition {
				return f.Mortal(New(objects, cluster, fsmmonitoring.Replicas, func() {}))
			},
			Outcome: func() string { return outcome(w.T, objects, of) },
		}
	}}
}

// nodes is a cluster of so many.
func nodes(n int) *kubesim.Cluster {
	cluster := kubesim.New()
	for i := range n {
		cluster.AddNode(fmt.Sprint("n", i), journal.RoleWorker)
	}
	return cluster
}

// outcome is what has become of the object: its generation tells how often it changed.
func outcome(t *testing.T, objects *kubesim.Objects, of journal.Subject) string {
	t.Helper()
	facts, err := Object(objects).Read(t.Context(), of)
	if errors.Is(err, kube.ErrNotFound) {
		return "gone"
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d replicas, generation %d", facts.Replicas, facts.Generation)
}

func scenes() actionstest.Scenes {
	return actionstest.Scenes{
		"up":           scaled(`{"spec":{"replicas":1,"x":1}}`, 2, nil),
		"down":         scaled(`{"spec":{"replicas":5}}`, 2, nil),
		"from none":    scaled(`{"spec":{}}`, 2, nil),
		"as it should": scaled(`{"spec":{"replicas":2}}`, 2, nil),
		"against another who was faster": scaled(`{"spec":{"replicas":1}}`, 2, func(objects *kubesim.Objects, ref kube.Ref, patches int) {
			if patches == 1 {
				objects.Edit(ref, func(object map[string]any) { object["spec"] = map[string]any{"replicas": 7} })
			}
		}),
		"replaced as it was to be changed": scaled(`{"spec":{"replicas":1}}`, 2, func(objects *kubesim.Objects, ref kube.Ref, patches int) {
			if patches == 1 {
				objects.Remove(ref)
				objects.Put(ref, `{"spec":{"replicas":1}}`)
			}
		}),
	}
}

func TestTheCrashMatrix(t *testing.T) { scenes().Run(t) }

func TestTheChangeTakesNoDomain(t *testing.T) {
	record := journal.ActionRecord{Subject: journal.MonitoringPrometheus}
	record.Request.Input = journal.MonitoringInput{Replicas: 2}
	plan, err := New(nil, nil, nil, nil).Plan(t.Context(), record)
	if err != nil || plan.Steps[0].Domains == nil || len(plan.Steps[0].Domains) != 0 || plan.Steps[0].Timeout == 0 {
		t.Errorf("%v: the plan is %+v", err, plan)
	}
	record.Request.Input = journal.MonitoringInput{}
	if _, err := New(nil, nil, nil, nil).Plan(t.Context(), record); err == nil {
		t.Error("a plan for no replicas at all")
	}
}

func TestWhatIsGoneOrCannotBeReadIsSaid(t *testing.T) {
	objects, of, cluster := kubesim.NewObjects(), journal.MonitoringAlertmanager, nodes(2)
	of.UID = objects.Put(Ref(of), `{"spec":{}}`)
	record := journal.ActionRecord{Subject: of}
	record.Request.Input = journal.MonitoringInput{Replicas: 2, Nodes: 2}
	check := func(kind actions.VerdictKind, key string) {
		t.Helper()
		verdict := New(objects, cluster, fsmmonitoring.Replicas, nil).Preflights[MonitoringStillThere].Check(t.Context(), record)
		if verdict.Kind != kind || verdict.Key != key {
			t.Errorf("got %+v, want %s about %q", verdict, kind, key)
		}
	}
	check(actions.VerdictPass, "")
	cluster.Forbid(kubesim.ListNodes)
	check(actions.VerdictHold, "nodes unread")
	cluster.Allow(kubesim.ListNodes)
	cluster.AddNode("another", journal.RoleWorker)
	check(actions.VerdictAbandon, "nodes")
	cluster.LoseNode("another") // which counts as well
	check(actions.VerdictAbandon, "nodes")
	cluster.RemoveNode("another")
	check(actions.VerdictPass, "")
	cluster.RemoveNode("n0")
	check(actions.VerdictAbandon, "nodes")
	cluster.AddNode("n0", journal.RoleWorker)
	objects.Forbid("get alertmanagers")
	check(actions.VerdictHold, "unread")
	objects.Allow("get alertmanagers")
	objects.Remove(Ref(of))
	check(actions.VerdictAbandon, "gone")
	objects.Put(Ref(of), `{"spec":{}}`)
	check(actions.VerdictAbandon, "replaced")
}
