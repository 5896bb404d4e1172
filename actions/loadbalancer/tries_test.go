package loadbalancer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/loadbalancer/loadbalancersim"
	"github.com/replicatedhq/ekco/journal"
)

// TestARestartOutlastsAnAPIServerThatIsAwayForAMoment: only what HAProxy did not work with is limited to two tries.
func TestARestartOutlastsAnAPIServerThatIsAwayForAMoment(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := newWorld(bare, "10.0.0.1")
		w.away = time.Now().Add(10 * time.Second)
		w.ask(journal.ActionRestartLoadBalancer, second, []string{"10.0.0.1"})
		running := w.Start(w.Config(w.kinds(nil)))
		time.Sleep(10 * time.Minute)
		running.Halt()
		if !w.Ended() || w.Count("stalled") > 0 {
			t.Errorf("%q", w.Story())
		}
	})
}

// TestANewImageThatFailsItsCheckStallsSoon: a check before an update is tried for longer.
func TestANewImageThatFailsItsCheckStallsSoon(t *testing.T) {
	for kind, want := range map[journal.ActionKind]int{journal.ActionRestartLoadBalancer: 3, journal.ActionUpdateLoadBalancer: 10} {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			w := newWorld(bare, "10.0.0.1")
			w.Set("a", hosttasksim.Program{Then: func(string) error { return errors.New("HAProxy refuses the configuration") }})
			w.ask(kind, second, []string{"10.0.0.1"}, func(input *journal.LoadBalancerInput) { input.CheckWith = second })
			running := w.Start(w.Config(w.kinds(nil)))
			time.Sleep(20 * time.Minute)
			running.Halt()
			if failed := w.Count("failed check a"); failed != want || w.Count("stalled") != 1 || w.Count("started write a") > 0 {
				t.Errorf("%s: it failed %d times: %q", kind, failed, w.Story())
			}
		})
	}
}

// TestARestartThatDoesNotWorkIsTriedTwice: each try restarts HAProxy. An update restarts nothing.
func TestARestartThatDoesNotWorkIsTriedTwice(t *testing.T) {
	for kind, limited := range map[journal.ActionKind]bool{journal.ActionRestartLoadBalancer: true, journal.ActionUpdateLoadBalancer: false} {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			w := newWorld(bare, "10.0.0.1")
			w.Set("a", hosttasksim.Program{Failed: "HAProxy was not confirmed to work"})
			w.ask(kind, second, []string{"10.0.0.1"})
			running := w.Start(w.Config(w.kinds(nil)))
			time.Sleep(10 * time.Minute)
			running.Halt()
			failed := w.Count("failed write a")
			if w.Count("stalled") != 1 || (failed == 2) != limited || failed < 2 {
				t.Errorf("%s: it failed %d times: %q", kind, failed, w.Story())
			}
		})
	}
}

// TestNothingIsWrittenWhileHAProxysLogCannotBeRead: each attempt would end in a restart of HAProxy. One that does not
// run is repaired nevertheless.
func TestNothingIsWrittenWhileHAProxysLogCannotBeRead(t *testing.T) {
	for _, kind := range []journal.ActionKind{journal.ActionUpdateLoadBalancer, journal.ActionRestartLoadBalancer} {
		for name, test := range map[string]struct {
			stopped           bool
			unreadable, noPod error
			writes            bool
		}{
			"its log cannot be read":   {unreadable: errors.New("the kubelet of its node does not return it")},
			"its pod cannot be read":   {noPod: kube.ErrForbidden},
			"it does not run":          {unreadable: errors.New("it is waiting to start"), stopped: true, writes: true},
			"it has no pod, nor a log": {unreadable: kube.ErrNotFound, noPod: kube.ErrNotFound, writes: true},
		} {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				w := newWorld(bare, "10.0.0.1")
				w.unreadable, w.noPod = test.unreadable, test.noPod
				w.fleet.Break("a", loadbalancersim.Faults{Stopped: test.stopped})
				w.ask(kind, second, []string{"10.0.0.2"}, onTrial)
				running := w.Start(w.Config(w.kinds(nil)))
				time.Sleep(10 * time.Minute)
				running.Halt()
				if writes := w.MaxAtOnce() > 0; writes != test.writes || !writes && w.Count("stalled") != 1 {
					t.Errorf("%s, %s: pods were made: %t; %q", kind, name, writes, w.Story())
				}
			})
		}
	}
}
