package observerstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/replicatedhq/ekco/internal/kube"
)

// ErrRefused is the error of calls while the server is down.
var ErrRefused = fmt.Errorf("%w: connection refused", kube.ErrUnavailable)

// World is a simulated API server with nodes, pods and ConfigMaps. Like a real server, a list has a version, and a
// watch begins after a version and misses nothing. Change its fields only in [World.Set].
type World struct {
	mu      sync.Mutex
	version int
	objects map[string]object
	log     []logged
	watches map[*worldWatch]struct{}
	calls   []string

	// Probes counts the probes.
	Probes int
	// AsOf has the versions that lists of nodes requested.
	AsOf []string
	// Streams is true if a watch can stream lists, as from Kubernetes 1.34 on.
	Streams bool
	// Down is the error of every call; nil while the server answers.
	Down error
	// Forbidden has the forbidden calls, such as "watch nodes" and "list pods".
	Forbidden map[string]bool
	// Failing has the errors of calls, with the same keys.
	Failing map[string]error
	// Fault returns another fault of a call. The call "probe" is included. It may be nil.
	Fault func(call string) Fault
}

// Fault is a fault of a call. The zero value is no fault.
type Fault struct {
	// Err is the error from the server or the network.
	Err error
	// Hangs is true if no answer comes within the timeout.
	Hangs bool
	// Mute is true if a watch opens but sends no events until the server closes it.
	Mute bool
}

// callTimeout is the timeout of a client's call.
const callTimeout = 10 * time.Second

// meet applies the fault of a call before the server handles the call.
func (w *World) meet(ctx context.Context, call string) (Fault, error) {
	w.mu.Lock()
	var met Fault
	if w.Fault != nil {
		met = w.Fault(call)
	}
	w.mu.Unlock()
	if !met.Hangs {
		return met, met.Err
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

// NewWorld returns an empty world whose API server answers.
func NewWorld() *World {
	return &World{
		objects: make(map[string]object), watches: make(map[*worldWatch]struct{}),
		Forbidden: make(map[string]bool), Failing: make(map[string]error),
	}
}

// Nodes is the source of all nodes.
func (w *World) Nodes() kube.Source { return worldSource{world: w, resource: "nodes"} }

// PodsOn is the source of the pods on a node; of all pods for "".
func (w *World) PodsOn(node string) kube.Source {
	return worldSource{world: w, resource: "pods", node: node}
}

// PodsLabelled is the source of the pods in a namespace with the label, reduced like real lists.
func (w *World) PodsLabelled(namespace, label, value string) kube.Source {
	return slimming{worldSource{world: w, resource: "pods", wants: func(pod *corev1.Pod) bool {
		return pod.Namespace == namespace && pod.Labels[label] == value
	}}, kube.SlimWithStatus}
}

// SecretNamed is the source of one Secret, reduced like real lists.
func (w *World) SecretNamed(namespace, name string) kube.Source {
	return slimming{worldSource{world: w, resource: "secrets", secret: namespace + "/" + name}, kube.SlimSecret}
}

// ConfigMaps is the source of all ConfigMaps.
func (w *World) ConfigMaps() kube.Source { return worldSource{world: w, resource: "configmaps"} }

// Requests is the source of all CertificateSigningRequests.
func (w *World) Requests() kube.Source {
	return worldSource{world: w, resource: "certificatesigningrequests"}
}

// Get reads one object from the server.
func (w *World) Get(ctx context.Context, resource, name string) (runtime.Object, error) {
	if _, err := w.meet(ctx, "get "+resource); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.admit("get", resource); err != nil {
		return nil, err
	}
	for _, o := range (worldSource{world: w, resource: resource}).selected() {
		if o.GetName() == name {
			return o, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// Probe returns nil while the server answers.
func (w *World) Probe(ctx context.Context) error {
	_, err := w.meet(ctx, "probe")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Probes++
	return cmp.Or(err, w.Down)
}

// Set calls f under the world's lock.
func (w *World) Set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// Fall stops the API server and closes every watch.
func (w *World) Fall(err error) {
	w.Set(func() { w.Down = err })
	w.BreakWatches()
}

// Rise lets the API server answer again.
func (w *World) Rise() { w.Set(func() { w.Down = nil }) }

// BreakWatches closes every open watch.
func (w *World) BreakWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for open := range w.watches {
		open.close()
	}
}

// BreakStreams ends every open watch with an error.
func (w *World) BreakStreams() {
	w.mu.Lock()
	defer w.mu.Unlock()
	lost := apierrors.NewInternalError(errors.New("http2: client connection lost")).Status()
	for open := range w.watches {
		open.events <- watch.Event{Type: watch.Error, Object: &lost}
	}
}

// Forget makes old versions unavailable, as etcd's compaction does.
func (w *World) Forget() { w.Set(func() { w.log = nil; w.version += 10 }) }

// Open counts the open watches of a resource.
func (w *World) Open(resource string) int {
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

// TakeCalls returns the calls since the last time.
func (w *World) TakeCalls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// Count returns how often a call is in the list.
func Count(calls []string, call string) int {
	count := 0
	for _, made := range calls {
		if made == call {
			count++
		}
	}
	return count
}

func keyOf(o object) string { return fmt.Sprintf("%T/%s/%s", o, o.GetNamespace(), o.GetName()) }

// Put creates or changes objects.
func (w *World) Put(objects ...object) {
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

// Remove deletes objects.
func (w *World) Remove(objects ...object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range objects {
		delete(w.objects, keyOf(o))
		w.tell(watch.Deleted, o)
	}
}

func (w *World) tell(kind watch.EventType, o object) {
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

// admit records a call and returns its error.
func (w *World) admit(verb, resource string) error {
	call := verb + " " + resource
	w.calls = append(w.calls, call)
	switch {
	case w.Down != nil:
		return w.Down
	case w.Failing[call] != nil:
		return w.Failing[call]
	case w.Forbidden[call]:
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("RBAC says no"))
	}
	return nil
}

type worldSource struct {
	world    *World
	resource string
	node     string
	// secret is the NAMESPACE/NAME of the only Secret in the source.
	secret string
	// wants selects pods. It may be nil.
	wants func(*corev1.Pod) bool
}

// slimming is a source that reduces its lists like a real one.
type slimming struct {
	worldSource
	slim func(runtime.Object)
}

var _ kube.Slimmer = slimming{}

func (s slimming) Slim(obj runtime.Object) { s.slim(obj) }

func (s slimming) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.worldSource.ListWithContext(ctx, options)
	if err == nil {
		s.Slim(list)
	}
	return list, err
}

func (s worldSource) selects(o object) bool {
	switch o := o.(type) {
	case *corev1.Node:
		return s.resource == "nodes"
	case *corev1.Pod:
		return s.resource == "pods" && (s.node == "" || o.Spec.NodeName == s.node) && (s.wants == nil || s.wants(o))
	case *corev1.ConfigMap:
		return s.resource == "configmaps"
	case *corev1.Secret:
		return s.resource == "secrets" && s.secret == o.Namespace+"/"+o.Name
	case *certificatesv1.CertificateSigningRequest:
		return s.resource == "certificatesigningrequests"
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

// ListWithContext returns all selected objects.
func (s worldSource) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if _, err := s.world.meet(ctx, "list "+s.resource); err != nil {
		return nil, err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if s.resource == "nodes" {
		s.world.AsOf = append(s.world.AsOf, options.ResourceVersion)
	}
	if err := s.world.admit("list", s.resource); err != nil {
		return nil, err
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.Itoa(s.world.version)}
	pods, configs := &corev1.PodList{ListMeta: meta}, &corev1.ConfigMapList{ListMeta: meta}
	nodes, secrets := &corev1.NodeList{ListMeta: meta}, &corev1.SecretList{ListMeta: meta}
	requests := &certificatesv1.CertificateSigningRequestList{ListMeta: meta}
	for _, o := range s.selected() {
		switch o := o.(type) {
		case *corev1.Node:
			nodes.Items = append(nodes.Items, *o)
		case *corev1.Pod:
			pods.Items = append(pods.Items, *o)
		case *corev1.ConfigMap:
			configs.Items = append(configs.Items, *o)
		case *corev1.Secret:
			secrets.Items = append(secrets.Items, *o)
		case *certificatesv1.CertificateSigningRequest:
			requests.Items = append(requests.Items, *o)
		}
	}
	return map[string]runtime.Object{
		"nodes": nodes, "pods": pods, "configmaps": configs, "certificatesigningrequests": requests, "secrets": secrets,
	}[s.resource], nil
}

// WatchWithContext opens a watch that begins after options.ResourceVersion.
func (s worldSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	met, err := s.world.meet(ctx, "watch "+s.resource)
	if err != nil {
		return nil, err
	}
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	streaming := options.SendInitialEvents != nil
	if streaming && !s.world.Streams {
		return nil, apierrors.NewBadRequest("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
	}
	if err := s.world.admit("watch", s.resource); err != nil {
		return nil, err
	}
	opened := &worldWatch{source: s, events: make(chan watch.Event, 1<<14)}
	if met.Mute {
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

// stream sends all objects and then the bookmark.
func (w *worldWatch) stream() {
	for _, o := range w.source.selected() {
		w.events <- watch.Event{Type: watch.Added, Object: o}
	}
	bookmark := map[string]object{
		"nodes": &corev1.Node{}, "pods": &corev1.Pod{}, "configmaps": &corev1.ConfigMap{},
		"certificatesigningrequests": &certificatesv1.CertificateSigningRequest{}, "secrets": &corev1.Secret{},
	}[w.source.resource]
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
