package ring

import (
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsmonitoring "github.com/replicatedhq/ekco/actions/monitoring"
	fsmmonitoring "github.com/replicatedhq/ekco/fsm/monitoring"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// monitored is the capability as the product has it.
func monitored(e *estate) Capability {
	capability := Capability{Fsm: fsmmonitoring.Capability(), Words: fsmmonitoring.Words}
	return WithObjects(capability, actionsmonitoring.Object(e), "", func(_ kube.API, changed func()) actions.Definition {
		return actionsmonitoring.New(e, e, fsmmonitoring.Replicas, changed)
	}, journal.MonitoringPrometheus, journal.MonitoringAlertmanager)
}

var (
	prometheusRef   = actionsmonitoring.Ref(journal.MonitoringPrometheus)
	alertmanagerRef = actionsmonitoring.Ref(journal.MonitoringAlertmanager)
)

func inMonitored(t *testing.T, test func(*estate)) {
	inAnEstate(t, journal.ActionScaleMonitoring, monitored, test)
}

func (e *estate) replicas(ref kube.Ref) float64 { return e.specOf(ref)["replicas"].(float64) }

func TestReplicasFollowTheNodesWithinTwoSeconds(t *testing.T) {
	inMonitored(t, func(e *estate) {
		e.objects.Put(prometheusRef, `{"spec":{"replicas":1}}`)
		e.objects.Put(alertmanagerRef, `{"spec":{"replicas":1}}`)
		in := e.live(nil)
		pass(5 * time.Minute)
		for _, step := range []struct {
			node                     string
			prometheus, alertmanager float64
		}{{"b", 2, 2}, {"c", 2, 3}, {"d", 2, 3}, {"-d", 2, 3}, {"-c", 2, 2}, {"-b", 1, 1}} {
			if name, leaves := strings.CutPrefix(step.node, "-"); leaves {
				e.server.Remove(observerstest.Node(name, "uid-"+name))
			} else {
				e.join(name)
			}
			took := e.takes(2*time.Second, func() bool {
				return e.replicas(prometheusRef) == step.prometheus && e.replicas(alertmanagerRef) == step.alertmanager
			})
			t.Logf("%s: %s", step.node, took)
			pass(time.Minute)
		}
		if n := len(e.changes()); n != 6 {
			t.Errorf("%d changes: %q", n, e.changes())
		}
		e.says("the status", e.status(in, "wide"), "monitoring/k8s", "InStep", "monitoring/prometheus-alertmanager", "InStep")
		e.says("the history", e.history("tree"), "prometheus monitoring/k8s has 1 replica",
			"scale-monitoring monitoring/k8s: done", "for 2 nodes it should have 2 replicas, and has 1", "set-replicas")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestCrashMatrixOfMonitoring(t *testing.T) {
	stories(t, journal.ActionScaleMonitoring, monitored, func(e *estate, arm func(*incarnation)) *incarnation {
		e.objects.Put(prometheusRef, `{"spec":{"replicas":1}}`)
		first := e.live(arm)
		last := first
		for _, change := range []func(){func() { e.join("b") }, func() { e.server.Remove(observerstest.Node("b", "uid-b")) }} {
			pass(5 * time.Minute)
			last = e.restarts(first, last)
			change()
		}
		pass(5 * time.Minute)
		last = e.restarts(first, last)
		if err := last.stop(); err != nil {
			e.t.Error(err)
		}
		if replicas := e.replicas(prometheusRef); replicas != 1 {
			e.t.Errorf("%v replicas", replicas)
		}
		return first
	})
}

func TestAtRestMonitoringIsReadOnceAMinuteAndWritesNothing(t *testing.T) {
	inMonitored(t, func(e *estate) {
		e.objects.Put(prometheusRef, `{"spec":{"replicas":1}}`)
		in := e.live(nil)
		pass(5 * time.Minute)
		events, read := len(e.events(journal.Query{})), e.objects.Calls("get prometheuses")
		pass(time.Hour)
		if n := len(e.events(journal.Query{})); n != events {
			t.Errorf("%d events in an hour of rest", n-events)
		}
		if n := e.objects.Calls("get prometheuses") - read; n < 50 || n > 70 {
			t.Errorf("read %d times in an hour", n)
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestADryRunScalesNothingAndSaysSoOnce(t *testing.T) {
	inMonitored(t, func(e *estate) {
		e.policy.DryRun = true
		e.objects.Put(prometheusRef, `{"spec":{"replicas":5}}`)
		in := e.live(nil)
		pass(time.Hour)
		ended := e.events(journal.Query{Types: []journal.Type{journal.TypeActionEnded}})
		if len(ended) != 1 || !strings.Contains(string(ended[0].Payload), string(journal.OutcomeDryRun)) || len(e.changes()) != 0 {
			t.Errorf("ended are %+v, changed %q", ended, e.changes())
		}
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnObjectThatWentBeforeItWasScaledEndsTheAction(t *testing.T) {
	inMonitored(t, func(e *estate) {
		e.objects.Put(prometheusRef, `{"spec":{"replicas":1}}`)
		in := e.live(nil)
		pass(5 * time.Minute)
		e.objects.Remove(prometheusRef)
		e.join("b")
		pass(5 * time.Minute)
		if open := e.state().OpenActions(); len(open) != 0 || len(e.changes()) != 0 {
			t.Errorf("open are %+v, changed %q", open, e.changes())
		}
		e.says("the history", e.history("tree"), "abandoned", "the object no longer exists")
		e.says("the status", e.status(in, "wide"), "Removed")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestAnActionThatWasHeldWhileNodesJoinedSetsNoNumberOfThePast: another one sets what
// they ask for.
func TestAnActionThatWasHeldWhileNodesJoinedSetsNoNumberOfThePast(t *testing.T) {
	inMonitored(t, func(e *estate) {
		e.objects.Put(alertmanagerRef, `{"spec":{"replicas":1}}`)
		in := e.live(nil)
		pass(5 * time.Minute)
		e.objects.Forbid("get alertmanagers")
		e.join("b")
		pass(time.Minute)
		e.says("the status", e.status(in, "wide"), "MonitoringStillThere")
		e.join("c")
		pass(time.Minute)
		e.objects.Allow("get alertmanagers")
		e.takes(5*time.Minute, func() bool { return e.replicas(alertmanagerRef) != 1 })
		if replicas := e.replicas(alertmanagerRef); replicas != 3 {
			t.Errorf("%v replicas are set first", replicas)
		}
		pass(5 * time.Minute)
		if n := len(e.changes()); n != 1 {
			t.Errorf("%d changes: %q", n, e.changes())
		}
		e.says("the history", e.history("tree"), "abandoned", "there are 3 nodes now, so it should have 3 replicas, not 2")
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
