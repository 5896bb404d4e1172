package ring

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/clear"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/cmd/internal/traces"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/pods"
)

// errDead is what a killed incarnation's calls return.
var errDead = errors.New("the process is dead")

// life is one incarnation of the process: after kill, nothing it does has an
// effect any more.
type life struct {
	mu   sync.Mutex
	dead bool
	over context.CancelFunc
	// ended is closed when the life is over.
	ended <-chan struct{}
}

func (l *life) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
	l.over()
}

func (l *life) check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errDead
	}
	return nil
}

// mortalStore kills its incarnation before or after its nth append.
type mortalStore struct {
	journal.Store
	life    *life
	appends int
	killAt  int
	before  bool
	mu      sync.Mutex
	// stalls, when set, says which drafts are not written before the life ends.
	stalls func(drafts []journal.Draft) bool
}

func (s *mortalStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	if s.stalls != nil && s.stalls(drafts) {
		<-s.life.ended
		return nil, errDead
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.life.check(); err != nil {
		return nil, err
	}
	s.appends++
	if s.appends == s.killAt && s.before {
		s.life.kill()
		return nil, errDead
	}
	events, err := s.Store.Append(ctx, drafts...)
	if s.appends == s.killAt {
		s.life.kill()
		return nil, errDead
	}
	return events, err
}

func (s *mortalStore) SaveSnapshot(ctx context.Context, snapshot journal.Snapshot) error {
	if err := s.life.check(); err != nil {
		return err
	}
	return s.Store.SaveSnapshot(ctx, snapshot)
}

// mortalKube has no effects after its incarnation's death.
type mortalKube struct {
	kube.API
	life  *life
	world *world
	// killAt is the effect, counted from 1, around which the process dies.
	effects, killAt int
	before          bool
	mu              sync.Mutex
}

func (k *mortalKube) around(name string, effect func() error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.life.check(); err != nil {
		return err
	}
	k.effects++
	if k.effects == k.killAt && k.before {
		k.life.kill()
		return errDead
	}
	k.world.intend(name)
	err := effect()
	if k.effects == k.killAt {
		k.life.kill()
		return errDead
	}
	return err
}

func (k *mortalKube) DeleteNode(ctx context.Context, name, uid string) error {
	return k.around("delete-node "+name, func() error { return k.API.DeleteNode(ctx, name, uid) })
}

func (k *mortalKube) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	return k.around("delete-pod "+namespace+"/"+name, func() error { return k.API.ForceDeletePod(ctx, namespace, name, uid) })
}

func (k *mortalKube) WriteMirror(ctx context.Context, content []byte, version string) (written string, err error) {
	err = k.around("write-mirror", func() error {
		written, err = k.API.WriteMirror(ctx, content, version)
		return err
	})
	return written, err
}

// policy is the engine's, and that of nodes.
type policy struct {
	enginePolicy
	nodePolicy
}

type (
	enginePolicy = fsm.Policy
	nodePolicy   = fsmnode.Policy
)

func (p policy) whole() fsm.Policy { return p.In(p.enginePolicy) }

// world is a simulated cluster and a journal that outlive every incarnation.
type world struct {
	t       *testing.T
	cluster *kubesim.Cluster
	store   journal.Store
	policy  policy
	// ahead is how far the machine's clock is, boot names its boot; booted is when
	// that began.
	ahead  atomic.Int64
	boot   string
	booted time.Time
	// clock is that of the incarnation that started last.
	clock atomic.Pointer[clock.Clock]
	// purge are the parts of a purge beyond the Node object.
	purge []purge.Option
	// onlyNode makes rings that work for one command.
	onlyNode string
	// worksFor is the command that such a ring works for.
	worksFor string
	// host is the machine on which rings run; by default each journal has its own.
	host string
	log  lockedBuffer
	// absent is what the observers cannot observe.
	absent []string
	// unlisted, when set, keeps the observers from their first list until it is
	// closed.
	unlisted chan struct{}
	// list, starts and metrics, when set, replace what rings can do, what observes for
	// them, and what measures.
	list    func() Capabilities
	starts  StartObservers
	metrics Metrics
	// beside, when set, runs beside the rings.
	beside func(ctx context.Context, may func() bool, open func(action string) bool)
	// known are the nodes that the journal knew when the last ring began to observe.
	known []fsmnode.Node
	// watcher observes for the ring that started last.
	watcher *watcher
	// unanswered is where clients tell that ring of what was not answered.
	unanswered Unanswered
	// unannounced are the effects that happened while their steps were not open
	// on disk.
	unannounced announcements
}

// lockedBuffer can be read while a ring logs to it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, cluster: kubesim.New(), policy: policy{fsm.DefaultPolicy(), fsmnode.DefaultPolicy()}, boot: "boot-1", booted: time.Now()}
	w.store = memory.New(memory.Clock(w.now))
	for _, name := range []string{"primary-1", "primary-2", "primary-3"} {
		w.cluster.AddNode(name, journal.RolePrimary)
	}
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		w.cluster.AddNode(name, journal.RoleWorker)
	}
	return w
}

// setClock puts the machine's clock ahead of what it should show.
func (w *world) setClock(ahead time.Duration) { w.ahead.Store(int64(ahead)) }

// reboot begins another boot of the machine, an hour of which has passed.
func (w *world) reboot(name string) { w.boot, w.booted = name, time.Now().Add(-time.Hour) }

func (w *world) source() clock.Source {
	return clock.Source{
		Wall: func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) },
		Boot: w.boot, Passed: func() time.Duration { return time.Since(w.booted) },
	}
}

// now is the time by which the journal is written.
func (w *world) now() time.Time {
	if c := w.clock.Load(); c != nil {
		return c.Now()
	}
	return w.source().Wall()
}

// incarnation is a running ring.
type incarnation struct {
	*Ring
	life  *life
	store *mortalStore
	kube  *mortalKube
	ended chan error
}

// start starts a ring; arm may say where it dies.
func (w *world) start(arm func(*incarnation)) *incarnation {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	life := &life{over: cancel, ended: ctx.Done()}
	in := &incarnation{
		life: life, store: &mortalStore{Store: w.store, life: life},
		kube: &mortalKube{API: w.cluster, life: life, world: w}, ended: make(chan error, 1),
	}
	if arm != nil {
		arm(in)
	}
	w.clock.Store(clock.New(w.source()))
	ring, err := New(ctx, Config{
		Clock: w.clock.Load(), Store: in.store, Kube: in.kube, Policy: w.policy.whole(), Log: w.logger(), Metrics: w.metrics,
		Identity: journal.OperatorStarted{Version: "v0.0.0", Host: cmp.Or(w.host, w.journalID()), PID: 1, Command: w.worksFor},
		Observe:  w.observe, Only: w.only(), Unanswered: &w.unanswered, Capabilities: w.capabilities(), Beside: w.beside,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	in.Ring = ring
	go func() { in.ended <- ring.Run(ctx) }()
	return in
}

// only is what a ring for one command works on.
func (w *world) only() Only {
	if w.onlyNode == "" {
		return Only{}
	}
	return Only{Kind: journal.ActionPurgeNode, Name: w.onlyNode}
}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&w.log, nil)) }

// stop ends the incarnation in order and returns what Run returned.
func (in *incarnation) stop() error {
	in.life.over()
	return <-in.ended
}

// state returns the fold of the journal.
func (w *world) state() *fsm.State {
	w.t.Helper()
	state, _, err := Fold(w.t.Context(), w.store, w.capabilities().Machines()...)
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

// onlyOpen returns the one action that is open.
func (w *world) onlyOpen() journal.ActionRecord {
	w.t.Helper()
	open := w.state().OpenActions()
	if len(open) != 1 {
		w.t.Fatalf("open is %+v, want one action", open)
	}
	return open[0]
}

func (w *world) events(query journal.Query) []journal.Event {
	w.t.Helper()
	var events []journal.Event
	for event, err := range w.store.Read(w.t.Context(), query) {
		if err != nil {
			w.t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

func (w *world) machine(name string) *fsmnode.Node {
	w.t.Helper()
	nodes := fsmnode.ByName(w.state(), name)
	if len(nodes) == 0 {
		return &fsmnode.Node{}
	}
	return nodes[0]
}

// watcher is a stand-in for the observers: it compares the simulated cluster
// with what it last wrote, at each change.
type watcher struct {
	world    *world
	recorder Recorder
	stop     context.CancelFunc
	ended    chan struct{}
	synced   chan struct{}

	mu        sync.Mutex
	unknown   map[string]string
	suspected []error
	changed   chan struct{}

	nodes map[string]kube.Node
	pods  map[string]kube.Pod
}

// capabilities are the product's, unless the test has others.
func (w *world) capabilities() Capabilities {
	if w.list != nil {
		return w.list()
	}
	return Capabilities{w.nodes()}
}

// nodes is the product's capability, but for its sources: the [watcher] observes.
func (w *world) nodes() Capability {
	return Capability{
		Fsm: fsmnode.Capability(), Words: fsmnode.Words,
		Actions: func(api kube.API) []actions.Definition {
			return []actions.Definition{clear.New(api), purge.New(api, w.purge...)}
		},
		Lookout: func(api kube.API, log *slog.Logger) Lookout { return traces.New(api, log, w.purge...) },
		Sources: func(s *fsm.State) []observers.Source {
			w.known = fsmnode.Known(s)
			return nil
		},
	}
}

func (w *world) observe(ctx context.Context, sources []observers.Source, recorder Recorder) Observers {
	if w.starts != nil {
		return w.starts(ctx, sources, recorder)
	}
	ctx, stop := context.WithCancel(ctx)
	o := &watcher{
		world: w, recorder: recorder, stop: stop, ended: make(chan struct{}), synced: make(chan struct{}),
		changed: make(chan struct{}, 1), nodes: map[string]kube.Node{}, pods: map[string]kube.Pod{},
	}
	for _, node := range w.known {
		if node.Present() {
			o.nodes[node.UID] = kube.Node{Name: node.Name, UID: node.UID, Facts: node.Facts}
		}
		for uid, pod := range node.Pods {
			o.pods[uid] = kube.Pod{Node: node.Name, PodRef: journal.PodRef{
				Namespace: pod.Namespace, Name: pod.Name, UID: uid, DeletionTimestamp: pod.DeletionTimestamp,
			}}
		}
	}
	w.watcher = o
	go o.run(ctx)
	return o
}

func (o *watcher) run(ctx context.Context) {
	defer close(o.ended)
	if o.world.unlisted != nil {
		select {
		case <-o.world.unlisted:
		case <-ctx.Done():
			return
		}
	}
	synced := false
	for {
		nodes, pods, changed := o.world.cluster.Snapshot()
		drafts := append(o.nodeFacts(nodes), o.podFacts(pods)...)
		if len(drafts) > 0 {
			if err := o.recorder.Record(ctx, drafts...); err != nil {
				return
			}
		}
		if !synced {
			close(o.synced)
			synced = true
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-o.changed:
		}
	}
}

func (o *watcher) nodeFacts(nodes []kube.Node) (drafts []journal.Draft) {
	present := map[string]bool{}
	for _, node := range nodes {
		present[node.UID] = true
		if known, ok := o.nodes[node.UID]; ok && known.Facts.Equal(node.Facts) {
			continue
		}
		o.nodes[node.UID] = node
		drafts = append(drafts, journal.Draft{
			Type: journal.TypeNodeObserved, Subject: journal.NodeSubject(node.Name, node.UID), Actor: "observer/node",
			Payload: journal.NodeObserved{NodeFacts: node.Facts},
		})
	}
	for uid, node := range o.nodes {
		if !present[uid] {
			delete(o.nodes, uid)
			drafts = append(drafts, journal.Draft{
				Type: journal.TypeNodeGone, Subject: journal.NodeSubject(node.Name, uid), Actor: "observer/node",
				Payload: journal.NodeGone{Reason: "deleted"},
			})
		}
	}
	return drafts
}

func (o *watcher) podFacts(pods []kube.Pod) (drafts []journal.Draft) {
	o.mu.Lock()
	defer o.mu.Unlock()
	present := map[string]bool{}
	for _, pod := range pods {
		nodeUID, watched := o.unknown[pod.Node]
		if !watched || pod.DeletionTimestamp.IsZero() {
			continue
		}
		present[pod.UID] = true
		if _, known := o.pods[pod.UID]; known {
			continue
		}
		o.pods[pod.UID] = pod
		grace := journal.Duration(pod.Grace)
		drafts = append(drafts, podDraft(journal.TypePodTerminating, pod, journal.PodTerminating{
			NodeUID: nodeUID, DeletionTimestamp: pod.DeletionTimestamp, GracePeriod: &grace,
		}))
	}
	for uid, pod := range o.pods {
		nodeUID, watched := o.unknown[pod.Node]
		if watched && !present[uid] {
			delete(o.pods, uid)
			drafts = append(drafts, podDraft(journal.TypePodGone, pod, journal.PodGone{NodeUID: nodeUID}))
		}
	}
	return drafts
}

func podDraft(kind journal.Type, pod kube.Pod, payload journal.Payload) journal.Draft {
	return journal.Draft{
		Type: kind, Subject: journal.PodSubject(pod.Namespace, pod.Name, pod.UID, pod.Node),
		Actor: "observer/pod", Payload: payload,
	}
}

func (o *watcher) Follow(things iter.Seq[observers.Thing]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unknown = pods.Lost(things)
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

func (o *watcher) WaitSynced(ctx context.Context) error {
	select {
	case <-o.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *watcher) Synced() bool {
	select {
	case <-o.synced:
		return true
	default:
		return false
	}
}

func (o *watcher) ReportFailedCall(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.suspected = append(o.suspected, err)
}

func (o *watcher) Absent() []string { return o.world.absent }

func (o *watcher) Stop() {
	o.stop()
	<-o.ended
}

// pass lets simulated time go by until everything has come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
