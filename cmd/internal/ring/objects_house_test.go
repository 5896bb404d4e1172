package ring

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// estate is a house in which a capability of the product changes objects.
type estate struct {
	*house
	objects *kubesim.Objects
	// kind is what its actions are; empty where there are several kinds.
	kind journal.ActionKind

	mu sync.Mutex
	// tries counts the calls that change something, killAt is the one around which the
	// incarnation dies.
	tries, killAt int
	before        bool
}

// inAnEstate runs a test with a capability that reaches its objects through the estate,
// and with no nodes but "a".
func inAnEstate(t *testing.T, kind journal.ActionKind, capability func(*estate) Capability, test func(*estate)) {
	inAHouse(t, func(h *house) {
		e := &estate{house: h, objects: kubesim.NewObjects(), kind: kind}
		h.list = func() Capabilities { return Capabilities{h.nodes(), capability(e)} }
		e.objects.BeforeEffect = e.mustBeRecorded
		test(e)
	})
}

// join adds ready nodes.
func (e *estate) join(names ...string) {
	for _, name := range names {
		e.server.Put(observerstest.Node(name, "uid-"+name))
	}
}

// mustBeRecorded fails the test when an effect happens without an open step on disk.
func (e *estate) mustBeRecorded(effect string) {
	for _, rec := range e.state().OpenActions() {
		for _, step := range rec.Steps {
			if (e.kind == "" || rec.Kind == e.kind) && step.Open {
				return
			}
		}
	}
	e.t.Errorf("%s happens, and no step is open on disk", effect)
}

// around lets a call that changes something through while the incarnation lives, which
// may die before or after it.
func (e *estate) around(call func() (json.RawMessage, error)) (json.RawMessage, error) {
	e.house.mu.Lock()
	life := e.life
	e.house.mu.Unlock()
	if err := life.check(); err != nil {
		return nil, err
	}
	if e.policy.DryRun {
		return nil, kube.ErrReadOnly
	}
	e.mu.Lock()
	e.tries++
	dies := e.tries == e.killAt
	e.mu.Unlock()
	if dies && e.before {
		life.kill()
		return nil, errDead
	}
	answer, err := call()
	if dies {
		life.kill()
		return nil, errDead
	}
	return answer, err
}

// ListNodes lists the nodes that are watched.
func (e *estate) ListNodes(ctx context.Context) (nodes []kube.Node, err error) {
	list, err := e.server.Nodes().ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, node := range list.(*corev1.NodeList).Items {
		nodes = append(nodes, kube.NodeOf(&node))
	}
	return nodes, nil
}

func (e *estate) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	return e.objects.ReadObject(ctx, ref)
}

func (e *estate) PatchObject(ctx context.Context, ref kube.Ref, patch []kube.PatchOp) (json.RawMessage, error) {
	return e.around(func() (json.RawMessage, error) { return e.objects.PatchObject(ctx, ref, patch) })
}

func (e *estate) ReplaceObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (json.RawMessage, error) {
	return e.around(func() (json.RawMessage, error) { return e.objects.ReplaceObject(ctx, ref, object) })
}

func (e *estate) CreateObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (json.RawMessage, error) {
	return e.around(func() (json.RawMessage, error) { return e.objects.CreateObject(ctx, ref, object) })
}

func (e *estate) ListObjects(ctx context.Context, ref kube.Ref, label, value string) ([]json.RawMessage, error) {
	return e.objects.ListObjects(ctx, ref, label, value)
}

func (e *estate) EndObject(ctx context.Context, ref kube.Ref, uid string, grace time.Duration) error {
	_, err := e.around(func() (json.RawMessage, error) { return nil, e.objects.EndObject(ctx, ref, uid, grace) })
	return err
}

func (e *estate) DeleteObject(ctx context.Context, ref kube.Ref, uid string) error {
	_, err := e.around(func() (json.RawMessage, error) { return nil, e.objects.DeleteObject(ctx, ref, uid) })
	return err
}

// changes returns what changed, in order.
func (e *estate) changes() (changes []string) {
	for _, effect := range e.objects.Effects() {
		if effect.Changed {
			changes = append(changes, effect.Name)
		}
	}
	return changes
}

// specOf returns what is asked of an object.
func (e *estate) specOf(ref kube.Ref) (spec map[string]any) {
	e.t.Helper()
	raw, err := e.objects.ReadObject(e.t.Context(), ref)
	if err != nil {
		e.t.Fatal(err)
	}
	var object struct{ Spec map[string]any }
	if err := json.Unmarshal(raw, &object); err != nil {
		e.t.Fatal(err)
	}
	return object.Spec
}

// restarts goes on with another incarnation if the first has died, and gives it time to
// catch up.
func (e *estate) restarts(first, last *incarnation) *incarnation {
	e.t.Helper()
	if last != first || first.life.check() == nil {
		return last
	}
	e.t.Logf("the first one ended: %v", <-first.ended)
	e.closeJournal()
	e.openJournal("journal.db")
	last = e.live(nil)
	pass(5 * time.Minute)
	return last
}

// stories plays one undisturbed, and killed before and after each append and each change:
// it must end with the same changes, and with nothing open.
func stories(t *testing.T, kind journal.ActionKind, capability func(*estate) Capability, play func(*estate, func(*incarnation)) *incarnation) {
	t.Helper()
	var want []string
	var did map[string]int
	inAnEstate(t, kind, capability, func(e *estate) {
		in := play(e, nil)
		want, did = e.changes(), map[string]int{dyingAppends: in.store.appends, dyingChanges: e.tries}
	})
	if did[dyingAppends] < 8 || did[dyingChanges] < 1 {
		t.Fatalf("a run without a crash did only %v", did)
	}
	for _, fate := range crashpoints.ChooseOf(t, fates(did)) {
		t.Run(fate.String(), func(t *testing.T) {
			inAnEstate(t, kind, capability, func(e *estate) {
				play(e, func(in *incarnation) { fate.arm(e, in) })
				if got := e.changes(); !slices.Equal(got, want) {
					t.Errorf("changed are %q, want %q; the journal says:\n%s", got, want, e.history("table"))
				}
				if open := e.state().OpenActions(); len(open) != 0 {
					t.Errorf("actions are left open: %+v", open)
				}
			})
		})
	}
}

// takes waits until the condition holds and returns how long that took.
func (e *estate) takes(limit time.Duration, condition func() bool) time.Duration {
	e.t.Helper()
	began := time.Now()
	for !condition() {
		if time.Since(began) > limit {
			e.t.Fatalf("not within %s; the journal says:\n%s", limit, strings.TrimSpace(e.history("table")))
		}
		pass(50 * time.Millisecond)
	}
	return time.Since(began)
}
