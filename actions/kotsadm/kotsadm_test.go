package kotsadm

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

func scene(content string, prepare func(d *database)) actionstest.Scene {
	return actionstest.Scene{Points: 12, Set: func(w *actionstest.World) actionstest.Stage {
		d := installed(w, content)
		if prepare != nil {
			prepare(d)
		}
		d.ask()
		return actionstest.Stage{
			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(d.definition()) },
			Outcome: d.outcome,
		}
	}}
}

func scenes() actionstest.Scenes {
	return actionstest.Scenes{
		"from one":   scene(single, nil),
		"from five":  scene(strings.ReplaceAll(single, "1", "5"), nil),
		"ready late": scene(single, func(d *database) { d.readyAfter = 5 * time.Minute }),
		"against another who was faster": scene(single, func(d *database) {
			first := true
			d.objects.BeforeEffect = func(string) {
				if first {
					first = false
					d.objects.Edit(Ref, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 2 })
				}
			}
		}),
	}
}

func TestTheCrashMatrix(t *testing.T) { scenes().Run(t) }

// steps returns what was told of the steps and holds.
func (d *database) tells(parts ...string) {
	d.T.Helper()
	story := strings.Join(d.Story(), "\n")
	rest := story
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			d.T.Fatalf("the journal does not say %q, after what comes before it:\n%s", part, story)
		}
		rest = after
	}
}

func TestReplicasThatDoNotGetReadyHoldTheActionWithTheirPodsReasons(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		d := installed(w, single)
		d.readyAfter = 0
		d.ask()
		r := w.Start(w.Config([]actions.Definition{d.definition()}))
		w.Pass(30 * time.Second)
		if occupied := w.Occupied(); len(occupied) != 0 || len(w.Record().Holds) != 0 {
			t.Errorf("while it waits it occupies %v and is held by %v", occupied, w.Record().Holds)
		}
		d.objects.Put(PodRef(1), `{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/2 nodes are available"}]}}`)
		d.objects.Edit(Ref, func(object map[string]any) {
			object["status"] = map[string]any{"observedGeneration": 2, "replicas": 3, "readyReplicas": 1, "updatedReplicas": 3}
		})
		w.Pass(2 * time.Minute)
		held := w.Record().Holds[journal.StepAwaitKotsadm]
		if held.Preflight != KotsadmReady || !strings.Contains(held.Reason, "1 of 3 replicas are ready; ") ||
			!strings.Contains(held.Reason, "kotsadm-rqlite-1: Pending: Unschedulable: 0/2 nodes are available") {
			t.Errorf("held by %+v", held)
		}
		events := len(w.Events())
		w.Pass(10 * time.Hour)
		if n := len(w.Events()) - events; n > 0 {
			t.Errorf("%d events while nothing changes", n)
		}
		d.ready()
		r.End()
		if d.looks != 1 || d.outcome() != "3 (-bootstrap-expect=3) replicas, generation 2" {
			t.Errorf("looked %d times; it is %s", d.looks, d.outcome())
		}
		d.tells("done scale", "held", "done "+journal.StepAwaitKotsadm, "ended done")
	})
}

func TestAReinstallWhileReplicasAreAwaitedEndsTheAction(t *testing.T) {
	for name, test := range map[string]struct {
		change func(d *database)
		reason string
	}{
		"reset": {func(d *database) {
			d.objects.Edit(Ref, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 1 })
		}, "another client set its replicas to 1 (-bootstrap-expect=3)"},
		"removed":  {func(d *database) { d.objects.Remove(Ref) }, "the StatefulSet no longer exists"},
		"replaced": {func(d *database) { d.objects.Remove(Ref); d.objects.Put(Ref, single) }, "the StatefulSet was replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				d := installed(w, single)
				d.readyAfter = 0
				d.ask()
				r := w.Start(w.Config([]actions.Definition{d.definition()}))
				w.Pass(5 * time.Minute)
				test.change(d)
				r.End()
				events := w.Events()
				last := string(events[len(events)-1].Payload)
				if !strings.Contains(last, `"abandoned"`) || !strings.Contains(last, test.reason) {
					t.Errorf("it ends with %s", last)
				}
				if name == "reset" && d.looks != 2 {
					t.Errorf("looked %d times", d.looks)
				}
			})
		})
	}
}

func TestADryRunChangesNothingAndWaitsForNothing(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		d := installed(w, single)
		w.Request(d.subject, journal.ActionRequested{Kind: journal.ActionScaleKotsadm, DryRun: true})
		w.RunToEnd(w.Config([]actions.Definition{d.definition()}))
		if w.LastLine() != "ended dry-run" || len(d.objects.Effects()) != 0 {
			t.Errorf("%s; %v", w.LastLine(), d.objects.Effects())
		}
	})
}

func TestOnlyTheChangeTakesTheStorage(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		d := installed(w, single)
		plan, err := d.definition().Plan(t.Context(), journal.ActionRecord{Subject: d.subject})
		if err != nil {
			t.Fatal(err)
		}
		if change, await := plan.Steps[0].Domains, plan.Steps[1].Domains; len(change) != 1 || change[0] != journal.DomainStorage || await == nil || len(await) != 0 {
			t.Errorf("the change takes %v, the wait %v", change, await)
		}
	})
}
