package loadbalancer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// liveNodes are nodes with the taints and UIDs that they have in the cluster now.
type liveNodes struct {
	*world
	names fleetNodes
	// lists is how often they were listed, and before is called each time.
	lists  int
	before func(list int) error
}

func (l *liveNodes) ListNodes(ctx context.Context) (all []kube.Node, err error) {
	l.lists++
	if err := l.before(l.lists); err != nil {
		return nil, err
	}
	nodes, err := l.names.ListNodes(ctx)
	for _, node := range nodes {
		if live, err := l.Node(ctx, node.Name); err == nil {
			node.UID, node.Facts.Taints = live.UID, live.Facts.Taints
			all = append(all, node)
		}
	}
	return all, err
}

func TestChangeStopsIfAChangedNodeIsNotReady(t *testing.T) {
	const lost = "its task was not run, because node w1 stopped being ready after its change"
	names := []string{"w1", "w2", "w3", "p1"}
	// loses has w1 lost when the nodes are listed that often: once for the plan, and then for each further node.
	loses := func(list int) func(*liveNodes, int) error {
		return func(l *liveNodes, n int) error {
			if n == list {
				l.Taint("w1", journal.TaintNotReady)
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		internal bool
		before   func(l *liveNodes, list int) error
		led      string // the nodes whose kubelets are pointed to the new server
		written  string // the nodes whose load balancers are written
		left     map[string]string
	}{
		"after its kubeconfigs": {before: loses(2), led: "w1", left: map[string]string{"w2": lost, "w3": lost, "p1": lost}},
		"later":                 {before: loses(3), led: "w1 w2", left: map[string]string{"w3": lost, "p1": lost}},
		"after its load balancer": {internal: true, before: loses(2), written: "w1", left: map[string]string{
			"w1": lost, "w2": "its load balancer was not verified: " + lost, "p1": "its load balancer was not verified: " + lost,
		}},
		"before its kubeconfigs": {internal: true, before: loses(5), written: "w1 w2 w3 p1", left: map[string]string{
			"w1": "node w1 is not ready", "w2": lost, "w3": lost, "p1": lost,
		}},
		"back in time": {before: func(l *liveNodes, n int) error {
			if n == 2 {
				time.AfterFunc(20*time.Second, func() { l.Taint("w1", "") })
			}
			return loses(2)(l, n)
		}, led: "w1 w2 w3 p1"},
		"back too late": {before: func(l *liveNodes, n int) error {
			if n == 2 {
				time.AfterFunc(31*time.Second, func() { l.Taint("w1", "") })
			}
			return loses(2)(l, n)
		}, led: "w1", left: map[string]string{"w2": lost, "w3": lost, "p1": lost}},
		"replaced": {before: func(l *liveNodes, n int) error {
			if n == 2 {
				l.Replace("w1")
			}
			return loses(2)(l, n)
		}, led: "w1 w2 w3 p1"},
		"gone": {before: func(l *liveNodes, n int) error {
			if n == 2 {
				l.Delete("w1")
			}
			return nil
		}, led: "w1 w2 w3 p1"},
		"before its turn": {before: loses(1), led: "w2 w3 p1", left: map[string]string{"w1": "node w1 is not ready"}},
		"an outage": {before: func(_ *liveNodes, n int) error {
			if n == 2 || n == 4 {
				return kube.ErrUnavailable
			}
			return nil
		}, led: "w1 w2 w3 p1"},
		"not allowed": {before: func(_ *liveNodes, n int) error {
			if n > 1 {
				return kube.ErrForbidden
			}
			return nil
		}, led: "w1", left: map[string]string{"w2": kube.ErrForbidden.Error()}},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				w := newWorld(bare)
				input := journal.KubeconfigsInput{Server: "https://lb", Internal: test.internal, Primaries: []string{"10.0.1.1"}}
				for i, name := range names {
					w.Add(name)
					w.fleet.SetAddress(name, fmt.Sprintf("10.0.2.%d", i))
					w.Set(name, hosttasksim.Program{Runs: w.fleet.Program(name), Trial: w.fleet.Trial(name), Then: w.fleet.Pull(name)})
				}
				w.Request(journal.Kubeconfigs, journal.ActionRequested{Kind: journal.ActionChangeLoadBalancer, Input: input})
				nodes := &liveNodes{world: w, names: names}
				nodes.before = func(list int) error { return test.before(nodes, list) }
				w.Start(w.Config(w.kindsIn(nodes))).End()
				outs := w.outs()
				var led, written []string
				for _, name := range names {
					if server, _ := w.fleet.KubeletServer(name); server != "" {
						led = append(led, name)
					}
					if w.fleet.StateOf(name).Servers > 0 {
						written = append(written, name)
					}
					if want := test.left[name]; !strings.Contains(outs["ended"], want) || !strings.Contains(outs["kubeconfig "+name], want) {
						t.Errorf("node %s, want %q: %q", name, want, outs)
					}
				}
				want := "done "
				if len(test.left) > 0 {
					want = "partial "
				}
				if strings.Join(led, " ") != test.led || strings.Join(written, " ") != test.written || !strings.HasPrefix(outs["ended"], want) {
					t.Errorf("%q are led elsewhere, %q are written: %q", led, written, outs)
				}
			})
		})
	}
}
