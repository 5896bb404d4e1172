package observers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/replicatedhq/ekco/internal/kube"
)

var errRefused = fmt.Errorf("%w: connection refused", kube.ErrUnavailable)

// world is an API server with nodes and pods, which answers as a real one does:
// lists have a version, and a watch begins after one and misses nothing.
type world struct {
	mu      sync.Mutex
	version int
	objects map[string]object
	log     []logged
	watches map[*worldWatch]struct{}
	calls   []string
	probes  int
	// asOf holds the versions that lists of nodes were asked for.
	asOf []string

	// streams: lists can be streamed by a watch, as from Kubernetes 1.34.
	streams bool
	// down is what every call returns; nil while the server answers.
	down error
	// forbidden holds "watch nodes", "list pods" and so on.
	forbidden map[string]bool
	// failing holds errors of calls, in the same words.
	failing map[string]error
	// fault, when set, says what else is wrong with a call; "probe" is one too.
	fault func(call string) fault
}

// fault is what a call meets on its way. The zero value is none.
type fault struct {
	// err is what the server, or the way to it, answers.
	err error
	// hangs: there is no answer within the time that a call has.
	hangs bool
	// mute: a watch is opened, and nothing comes until the server closes it.
	mute bool
}

// callTimeout is what a client gives a call.
const callTimeout = 10 * time.Second

// meet has a call meet its fault, before it gets to the server.
func (w *world) meet(ctx context.Context, call string) (fault, error) {
	w.mu.Lock()
	var met fault
	if w.fault != nil {
		met = w.fault(call)
	}
	w.mu.Unlock()
	if !met.hangs {
		return met, met.err
	}
	late := time.NewTimer(callTimeout)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
	}
	return met, fmt.Errorf("%w: %w", kube.ErrUnavailable, context.DeadlineExceeded)
}

type object interface {
	runtime.Object
	metav1.Object
}

type logged struct {
	version int
	kind    watch.EventType
	object  object
}

func newWorld() *world {
	return &world{
		objects: make(map[string]object), watches: make(map[*worldWatch]struct{}),
		forbidden: make(map[string]bool), failing: make(map[string]error),
	}
}

func (w *world) Nodes() kube.Source { return worldSource{w, "nodes", ""} }

func (w *world) PodsOn(node string) kube.Source { return worldSource{w, "pods", node} }

func (w *world) Probe(ctx context.Context) error {
	_, err := w.meet(ctx, "probe")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.probes++
	return cmp.Or(err, w.down)
}

// set runs f under the world's lock.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// fall makes the API server go away, and every watch with it.
func (w *world) fall(err error) {
	w.set(func() { w.down = err })
	w.breakWatches()
}

func (w *world) rise() { w.set(func() { w.down = nil }) }

// breakWatches closes every open watch.
func (w *world) breakWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for open := range w.watches {
		open.close()
	}
}

// breakStreams ends every open watch with an error.
func (w *world) breakStreams() {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := apierrors.NewInternalError(errors.New("http2: client connection lost")).Status()
	for open := range w.watches {
		open.events <- watch.Event{Type: watch.Error, Object: &lost}
	}
}

// forget makes old versions unavailable, as etcd's compaction does.
func (w *world) forget() { w.set(func() { w.log = nil; w.version += 10 }) }

// open counts the open watches of a resource.
func (w *world) open(resource string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for open := range w.watches {
		if open.source.resource == resource {
			count++
		}
	}
	return count
}

// takeCalls returns the calls since the last time.
func (w *world) takeCalls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

func keyOf(o object) string { return fmt.Sprintf("%T/%s/%s", o, o.GetNamespace(), o.GetName()) }

// put creates or changes objects.
func (w *world) put(objects ...object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range objects {
		kind := watch.Added
		if _, ok := w.objects[keyOf(o)]; ok {
			kind = watch.Modified
		}
		w.objects[keyOf(o)] = o
		w.tell(kind, o)
	}
}

// remove deletes objects.
func (w *world) remove(objects ...object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range objects {
		delete(w.objects, keyOf(o))
		w.tell(watch.Deleted, o)
	}
}

func (w *world) tell(kind watch.EventType, o object) {
	w.version++
	o = o.DeepCopyObject().(object)
	o.SetResourceVersion(strconv.Itoa(w.version))
	if kind != watch.Deleted {
		w.objects[keyOf(o)] = o
	}
	entry := logged{w.version, kind, o}
	w.log = append(w.log, entry)
	for open := range w.watches {
		open.send(entry)
	}
}

// admit counts a call and returns its error.
func (w *world) admit(verb, resource string) error {
	call := verb + " " + resource
	w.calls = append(w.calls, call)
	switch {
	case w.down != nil:
		return w.down
	case w.failing[call] != nil:
		return w.failing[call]
	case w.forbidden[call]:
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("RBAC says no"))
	}
	return nil
}

type worldSource struct {
	world    *world
	resource string
	node     string
}

func (s worldSource) selects(o object) bool {
	switch o := o.(type) {
	case *corev1.Node:
		return s.resource == "nodes"
	case *corev1.Pod:
		return s.resource == "pods" && (s.node == "" || o.Spec.NodeName == s.node)
	}
	return false
}

func (s worldSource) selected() []object {
	return slices.SortedFunc(func(yield func(object) bool) {
		for o := range maps.Values(s.world.objects) {
			if s.selects(o) && !yield(o.DeepCopyObject().(object)) {
				return
			}
		}
	}, func(a, b object) int { return cmp.Compare(keyOf(a), keyOf(b)) })
}

// ListWithContext returns everything that is selected.
func (s worldSource) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if _, err := s.world.meet(ctx, "list "+s.resource); err != nil {
		return nil, err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if s.resource == "nodes" {
		s.world.asOf = append(s.world.asOf, options.ResourceVersion)
	}
	if err := s.world.admit("list", s.resource); err != nil {
		return nil, err
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(s.world.version)}
	if s.resource == "pods" {
		list := &corev1.PodList{ListMeta: meta}
		for _, o := range s.selected() {
			list.Items = append(list.Items, *o.(*corev1.Pod))
		}
		return list, nil
	}
	list := &corev1.NodeList{ListMeta: meta}
	for _, o := range s.selected() {
		list.Items = append(list.Items, *o.(*corev1.Node))
	}
	return list, nil
}

// WatchWithContext opens a watch after options.ResourceVersion.
func (s worldSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	met, err := s.world.meet(ctx, "watch "+s.resource)
	if err != nil {
		return nil, err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	streaming := options.SendInitialEvents != nil
	if streaming && !s.world.streams {
		return nil, apierrors.NewBadRequest("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	}
	if err := s.world.admit("watch", s.resource); err != nil {
		return nil, err
	}
	opened := &worldWatch{source: s, events: make(chan watch.Event, 1<<14)}
	if met.mute {
		time.AfterFunc(time.Duration(*options.TimeoutSeconds)*time.Second, opened.Stop)
		return opened, nil
	}
	after, _ := strconv.Atoi(options.ResourceVersion)
	if streaming {
		opened.stream()
		after = s.world.version
	}
	if len(s.world.log) == 0 && after < s.world.version || len(s.world.log) > 0 && s.world.log[0].version > after+1 {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	for _, entry := range s.world.log {
		if entry.version > after {
			opened.send(entry)
		}
	}
	s.world.watches[opened] = struct{}{}
	return opened, nil
}

type worldWatch struct {
	source worldSource
	events chan watch.Event
	ended  bool
}

// stream sends everything there is, and the mark that says so.
func (w *worldWatch) stream() {
	for _, o := range w.source.selected() {
		w.events <- watch.Event{Type: watch.Added, Object: o}
	}
	mark := &corev1.Node{}
	var bookmark object = mark
	if w.source.resource == "pods" {
		bookmark = &corev1.Pod{}
	}
	bookmark.SetResourceVersion(strconv.Itoa(w.source.world.version))
	bookmark.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	w.events <- watch.Event{Type: watch.Bookmark, Object: bookmark}
}

func (w *worldWatch) send(entry logged) {
	if !w.ended && w.source.selects(entry.object) {
		w.events <- watch.Event{Type: entry.kind, Object: entry.object.DeepCopyObject()}
	}
}

func (w *worldWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *worldWatch) Stop() {
	w.source.world.mu.Lock()
	defer w.source.world.mu.Unlock()
	w.close()
}

func (w *worldWatch) close() {
	if !w.ended {
		w.ended = true
		close(w.events)
		delete(w.source.world.watches, w)
	}
}

// node returns a ready worker.
func node(name, uid string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid),
			CreationTimestamp: metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: name},
		}},
	}
	for _, change := range changes {
		change(n)
	}
	return n
}

// unreachable adds the taint of a lost node.
func unreachable(since time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		added := metav1.NewTime(since)
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added,
		})
	}
}

// heartbeat changes what EKCO does not judge by.
func heartbeat(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
}

// pod returns a running pod; name is "namespace/name".
func pod(name, uid, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	namespace, name, _ := strings.Cut(name, "/")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

// terminating asks the pod to end at that time, with a grace of 30 s.
func terminating(asked time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		grace := int64(30)
		at := metav1.NewTime(asked.Add(30 * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
}
