package ring

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	actionsreport "github.com/replicatedhq/ekco/actions/nodereport"
	"github.com/replicatedhq/ekco/fsm"
	fsmreport "github.com/replicatedhq/ekco/fsm/nodereport"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// ward is a house on whose nodes simulated kubelets run host tasks.
type ward struct {
	*estate
	cluster *hosttasksim.Cluster
	// full says that the quota of the namespace is used up; stolen has somebody else make a
	// pod of the name first.
	full, stolen atomic.Bool
}

// inAWard runs a test with the capability as the product has it, on these nodes.
func inAWard(t *testing.T, nodes []string, test func(*ward)) {
	inAHouse(t, func(h *house) { test(newWard(h, nodes)) })
}

func newWard(h *house, nodes []string) *ward {
	cluster := hosttasksim.New(nodes...)
	w := &ward{estate: &estate{house: h, objects: cluster.Objects, kind: journal.ActionReportNode}, cluster: cluster}
	cluster.BeforeEffect = func(effect string) {
		if strings.HasPrefix(effect, "create ") { // what is removed was announced by that
			w.mustBeRecorded(effect)
		}
	}
	for _, node := range nodes {
		h.server.Put(observerstest.Node(node, "uid-"+node))
	}
	return w
}

// live starts a ring with host tasks of its own.
func (w *ward) live(arm func(*incarnation)) *incarnation {
	tasks := hosttask.New(w, w, hosttasksim.Namespace, w.logger())
	capability := Capability{
		Fsm: fsmreport.Capability(), Words: fsmreport.Words,
		Actions: func(kube.API) []actions.Definition {
			return []actions.Definition{actionsreport.New(actionsreport.Dependencies{
				Tasks: tasks, Objects: w, Image: "replicated/ekco:v1", Command: []string{"host-task", "node-report"},
			})}
		},
	}
	w.list = func() Capabilities { return Capabilities{w.nodes(), capability} }
	w.beside = tasks.SweepRegularly
	return w.estate.live(arm)
}

// dead returns an error once the incarnation is.
func (w *ward) dead() error {
	w.house.mu.Lock()
	life := w.life
	w.house.mu.Unlock()
	return life.check()
}

// ask asks for the report of each node, as a person does.
func (w *ward) ask(in *incarnation, nodes ...string) error {
	for _, node := range nodes {
		_, err := in.Backend(nil).Request(w.t.Context(), fsm.Request{Kind: journal.ActionReportNode, Name: node, Actor: "cli:root@h"})
		if err != nil {
			return err
		}
	}
	return nil
}

// Node implements [hosttask.Nodes].
func (w *ward) Node(ctx context.Context, name string) (kube.Node, error) {
	if err := w.dead(); err != nil {
		return kube.Node{}, err
	}
	return w.cluster.Node(ctx, name)
}

// ForceDeletePod implements [hosttask.Nodes].
func (w *ward) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	_, err := w.around(func() (json.RawMessage, error) { return nil, w.cluster.ForceDeletePod(ctx, namespace, name, uid) })
	return err
}

// PodLog implements [hosttask.Nodes].
func (w *ward) PodLog(ctx context.Context, namespace, name string, last int64) (string, error) {
	if err := w.dead(); err != nil {
		return "", err
	}
	return w.cluster.PodLog(ctx, namespace, name, last)
}

// PodsLabelled implements [hosttask.Nodes].
func (w *ward) PodsLabelled(namespace, label, value string) kube.Source {
	return w.cluster.PodsLabelled(namespace, label, value)
}

// ReadObject implements [kube.Objects].
func (w *ward) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if err := w.dead(); err != nil {
		return nil, err
	}
	return w.cluster.ReadObject(ctx, ref)
}

// CreateObject implements [kube.Objects].
func (w *ward) CreateObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (json.RawMessage, error) {
	if w.full.Load() {
		return nil, fmt.Errorf("%w: pods is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5", kube.ErrForbidden)
	}
	if bytes.Contains(object, []byte(`"nodeName":"a"`)) && w.stolen.CompareAndSwap(true, false) {
		w.cluster.Put(ref, `{"metadata":{"labels":{"app":"somebody's"}},"spec":{"nodeName":"elsewhere"},"status":{"phase":"Running"}}`)
	}
	return w.estate.CreateObject(ctx, ref, object)
}

// reported returns what each action has come to, with the node's name before it.
func (w *ward) reported() []string {
	w.t.Helper()
	nodes, facts, outputs := map[string]string{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	var reported []string
	for _, event := range w.events(journal.Query{}) {
		switch p := event.Decoded().Body.(type) {
		case *journal.ActionRequested:
			nodes[event.Action] = event.Subject.Name
		case *journal.ActionPlanned:
			facts[event.Action] = p.Plan.Facts
		case *journal.StepDone:
			if strings.HasPrefix(p.Step, actionsreport.Does+" ") {
				outputs[event.Action] = p.Outputs
			}
		case *journal.ActionEnded:
			report, err := actionsreport.Of(facts[event.Action], outputs[event.Action])
			if err != nil {
				w.t.Error(err)
			}
			what := report.Missing
			if report.Host != nil {
				what = "looked"
			}
			reported = append(reported, fmt.Sprintf("%s %s: %s, %s", nodes[event.Action], p.Outcome, report.Kubelet, what))
		}
	}
	slices.Sort(reported)
	return reported
}

// clean fails the test when a pod of EKCO's is left, or was for longer than installers may
// see it, or when too many ran.
func (w *ward) clean() {
	w.t.Helper()
	for _, pod := range w.cluster.Pods() {
		if !strings.HasPrefix(pod, "elsewhere ") {
			w.t.Errorf("left is %s", pod)
		}
	}
	if bad := w.cluster.BadFor(); bad > 30*time.Second {
		w.t.Errorf("a pod that could not succeed any more was left for %s", bad)
	}
	if most := w.cluster.MaxAtOnce(); most > hosttask.AtOnce {
		w.t.Errorf("%d ran at a time", most)
	}
	if open := w.state().OpenActions(); len(open) > 0 {
		w.t.Errorf("open are %+v", open)
	}
}

// wasKilled reports whether a request failed since its EKCO was killed.
func wasKilled(err error) bool {
	return errors.Is(err, errDead) || errors.Is(err, errStopped) || errors.Is(err, context.Canceled)
}
