package hosttask_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	shape "github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/hosttask/hosttasksim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const kind journal.ActionKind = "paint"

var subject = journal.Subject{Kind: "Cluster", Name: "kurl"}

// estate is a cluster on whose nodes something is done.
type estate struct {
	*actionstest.World
	*hosttasksim.Cluster
	nodes []string
	// uncounted leaves out how many pods there were.
	uncounted bool
	partial   bool
	paths     []hosttask.Path
	limit     time.Duration
	// domains are those of the step that runs the program.
	domains []string
	// verify is that of a task with a trial, nil for one without.
	verify func(ctx context.Context, step actions.StepContext, node string, result json.RawMessage) error
	// read checks what programs found, as that of a capability does.
	read func(json.RawMessage) (json.RawMessage, error)
	// quota has the namespace's quota used up.
	quota atomic.Bool
	// away is until when the API server changes no pods.
	away time.Time
}

func newEstate(w *actionstest.World, nodes ...string) *estate {
	e := &estate{World: w, Cluster: hosttasksim.New(nodes...), nodes: nodes}
	return e
}

func (e *estate) ask() { e.Request(subject, journal.ActionRequested{Kind: kind}) }

// kinds are the action as one incarnation of EKCO has it, with clients and places of its own.
// Its clients die with it, and so all that its steps do.
func (e *estate) kinds(f *actionstest.Fuse) []actions.Definition {
	log := slog.New(slog.NewTextHandler(e.World, nil))
	objects := mortal{e.Cluster, f, &e.quota, e.away}
	work := shape.Work{Tasks: hosttask.New(objects, objects, hosttasksim.Namespace, log), Does: "paint", Partial: e.partial, Read: e.read, Verify: e.verify}
	return []actions.Definition{{Kind: kind, Noun: "painting", Steps: work.Steps(), Plan: e.plan(work)}}
}

func (e *estate) plan(work shape.Work) func(context.Context, journal.ActionRecord) (journal.Plan, error) {
	return func(context.Context, journal.ActionRecord) (plan journal.Plan, err error) {
		for _, node := range e.nodes {
			_, _, err = work.Plan(&plan, hosttask.Task{
				Name: "paint", Node: node, NodeUID: "uid-" + node, Image: "replicated/ekco:v1", Args: []string{"paint"},
				Limit: journal.Duration(e.limit), Paths: e.paths, Trial: e.verify != nil, LosesNode: e.verify != nil,
			}, journal.PlannedStep{Domains: append(actions.NoDomains, e.domains...)})
			if err != nil {
				return journal.Plan{}, err
			}
		}
		return plan, nil
	}
}

func (e *estate) config() actions.Config {
	cfg := e.Config(e.kinds(nil))
	cfg.Domains = nil
	return cfg
}

// outcomes are what went on record of each node, in whichever journal, and how many pods that
// took.
func (e *estate) outcomes() string {
	told := map[string]string{}
	note := func(step string, outputs json.RawMessage) {
		var outcome shape.Outcome
		node, is := strings.CutPrefix(step, "paint ")
		if !is || len(outputs) == 0 {
			return
		}
		if err := json.Unmarshal(outputs, &outcome); err != nil {
			e.T.Fatal(err)
		}
		told[node] = fmt.Sprintf("%s %s%s%s", node, outcome.Result, outcome.Missing, outcome.Left)
		if !e.uncounted {
			told[node] += fmt.Sprintf(" (%d pods)", e.Made(node))
		}
	}
	for _, event := range e.Events() {
		payload, err := event.Decode()
		if err != nil {
			e.T.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.StepDone:
			note(p.Step, p.Outputs)
		case *journal.ActionAdopted:
			for step, of := range p.Record.Steps {
				note(step, of.Outputs)
			}
		}
	}
	lines := slices.Sorted(maps.Values(told))
	return strings.Join(append(lines, fmt.Sprintf("%d left", len(e.Pods()))), "; ")
}

// clean fails the test when a pod is left, or was for longer than installers may see it.
func (e *estate) clean() {
	e.T.Helper()
	if pods := e.Pods(); len(pods) > 0 {
		e.T.Errorf("left are %q", pods)
	}
	if bad := e.BadFor(); bad > 30*time.Second {
		e.T.Errorf("a pod that could not succeed any more was left for %s", bad)
	}
	if most := e.MaxAtOnce(); most > hosttask.AtOnce {
		e.T.Errorf("%d ran at a time", most)
	}
}

// mortal is the API server as one incarnation reaches it.
type mortal struct {
	*hosttasksim.Cluster
	fuse *actionstest.Fuse
	// full says that the namespace's quota is used up.
	full *atomic.Bool
	away time.Time
}

func (m mortal) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if err := m.fuse.Alive(); err != nil {
		return nil, err
	}
	return m.Cluster.ReadObject(ctx, ref)
}

func (m mortal) CreateObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	if m.full.Load() {
		return nil, fmt.Errorf("%w: pods is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5", kube.ErrForbidden)
	}
	err = m.fuse.Around("create "+ref.String(), func() (err error) {
		answer, err = m.Cluster.CreateObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (m mortal) ReplaceObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	if time.Now().Before(m.away) {
		return nil, kube.ErrUnavailable
	}
	err = m.fuse.Around("update "+ref.String(), func() (err error) {
		answer, err = m.Cluster.ReplaceObject(ctx, ref, object)
		return err
	})
	return answer, err
}

func (m mortal) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return m.fuse.Around("delete "+name, func() error { return m.Cluster.ForceDeletePod(ctx, namespace, name, uid) })
}

func names(n int) []string {
	all := map[string]bool{}
	for i := range n {
		all[fmt.Sprintf("n%04d", i)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func (*estate) podName(node string) string {
	return hosttask.Task{Name: "paint"}.PodName(hosttask.Owner{Action: actionstest.ActionID, Step: "paint " + node})
}
