package monitoring

import (
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/monitoring"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scaled begins with an object of that content and a request for so many replicas; then
// may change the world as the patch arrives.
func scaled(content string, replicas int, meanwhile func(objects *kubesim.Objects, ref kube.Ref, patches int)) actionstest.Scene {
	return actionstest.Scene{Points: 8, Set: func(w *actionstest.World) actionstest.Stage {
		objects, of := kubesim.NewObjects(), journal.MonitoringPrometheus
		of.UID = objects.Put(monitoring.Ref(of), content)
		patches := 0
		objects.BeforeEffect = func(string) {
			if patches++; meanwhile != nil {
				meanwhile(objects, monitoring.Ref(of), patches)
			}
		}
		w.Request(of, journal.ActionRequested{
			Kind: journal.ActionScaleMonitoring, Input: journal.MonitoringInput{Replicas: replicas, Nodes: replicas},
		})
		return actionstest.Stage{
			Kinds: func(f *actionstest.Fuse) []actions.Definition {
				return f.Mortal(New(monitoring.NewClient(objects), func() {}))
			},
			Outcome: func() string { return outcome(w.T, objects, of) },
		}
	}}
}

// outcome is what has become of the object: its generation tells how often it changed.
func outcome(t *testing.T, objects *kubesim.Objects, of journal.Subject) string {
	t.Helper()
	facts, err := monitoring.NewClient(objects).Read(t.Context(), of)
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
		"up":          scaled(`{"spec":{"replicas":1,"x":1}}`, 2, nil),
		"down":        scaled(`{"spec":{"replicas":5}}`, 2, nil),
		"from none":   scaled(`{"spec":{}}`, 2, nil),
		"as it shall": scaled(`{"spec":{"replicas":2}}`, 2, nil),
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

func TestWhatIsGoneOrCannotBeReadIsSaid(t *testing.T) {
	objects, of := kubesim.NewObjects(), journal.MonitoringPrometheus
	of.UID = objects.Put(monitoring.Ref(of), `{"spec":{}}`)
	check := func(kind actions.VerdictKind, key string) {
		t.Helper()
		verdict := stillThere(monitoring.NewClient(objects)).Check(t.Context(), journal.ActionRecord{Subject: of})
		if verdict.Kind != kind || verdict.Key != key {
			t.Errorf("got %+v, want %s about %q", verdict, kind, key)
		}
	}
	check(actions.VerdictPass, "")
	objects.Forbid("get prometheuses")
	check(actions.VerdictHold, "unread")
	objects.Allow("get prometheuses")
	objects.Remove(monitoring.Ref(of))
	check(actions.VerdictAbandon, "gone")
	objects.Put(monitoring.Ref(of), `{"spec":{}}`)
	check(actions.VerdictAbandon, "replaced")
}
