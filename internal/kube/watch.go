package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Source lists and watches objects of one resource.
type Source = cache.ListerWatcherWithContext

// Slimmer is a [Source] that knows what its objects must hold.
type Slimmer interface {
	// Slim removes the rest from an object, or from each in a list.
	Slim(obj runtime.Object)
}

// Nodes is the source of all Nodes. Its lists hold only what [NodeLabelled] needs with the client's labels; its
// watches hold whole objects.
func (c *Client) Nodes() Source {
	return &source{client: c, resource: "nodes", newList: func() runtime.Object { return &corev1.NodeList{} }, slim: c.slimNodes}
}

func (c *Client) slimNodes(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Node:
		slimNode(o, c.nodeLabels...)
	case *corev1.NodeList:
		for i := range o.Items {
			slimNode(&o.Items[i], c.nodeLabels...)
		}
	default:
		Slim(obj)
	}
}

// PodsOn is the source of the Pods on the named node, in all namespaces; of all Pods if the name is empty. Its
// lists hold only what [PodOf] needs and the grace period; its watches hold whole objects.
func (c *Client) PodsOn(node string) Source {
	s := &source{client: c, resource: "pods", newList: func() runtime.Object { return &corev1.PodList{} }}
	if node != "" {
		s.fields = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	return s
}

// PodsLabelled is the source of the Pods in a namespace that have the label. Its lists hold only what
// [PodWithStatusOf] needs; its watches hold whole objects.
func (c *Client) PodsLabelled(namespace, label, value string) Source {
	return &source{
		client: c, resource: "pods", newList: func() runtime.Object { return &corev1.PodList{} },
		namespace: namespace, labels: labels.Set{label: value}.String(), slim: SlimWithStatus,
	}
}

// SecretNamed is the source of one Secret. Its lists hold only its name and version; its watches hold whole
// objects.
func (c *Client) SecretNamed(namespace, name string) Source {
	return &source{
		client: c, resource: "secrets", newList: func() runtime.Object { return &corev1.SecretList{} },
		namespace: namespace, fields: fields.OneTermEqualSelector("metadata.name", name).String(), slim: SlimSecret,
	}
}

// SlimSecret removes from a Secret, or from each in a list, everything but name and version.
func SlimSecret(obj runtime.Object) {
	slim := func(s *corev1.Secret) {
		*s = corev1.Secret{TypeMeta: s.TypeMeta, ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		}}
	}
	switch o := obj.(type) {
	case *corev1.Secret:
		slim(o)
	case *corev1.SecretList:
		for i := range o.Items {
			slim(&o.Items[i])
		}
	}
}

// SlimWithStatus is [Slim], but keeps what PodWithStatusOf needs.
func SlimWithStatus(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Pod:
		slimPodWithStatus(o)
	case *corev1.PodList:
		for i := range o.Items {
			slimPodWithStatus(&o.Items[i])
		}
	default:
		Slim(obj)
	}
}

// Slim removes from a Node or Pod, or from each in a list, what NodeOf or PodOf do not need. Other objects stay
// unchanged.
func Slim(obj runtime.Object) {
	switch o := obj.(type) {
	case *corev1.Node:
		slimNode(o)
	case *corev1.Pod:
		slimPod(o)
	case *corev1.NodeList:
		for i := range o.Items {
			slimNode(&o.Items[i])
		}
	case *corev1.PodList:
		for i := range o.Items {
			slimPod(&o.Items[i])
		}
	}
}

type source struct {
	client   *Client
	resource string
	newList  func() runtime.Object
	// namespace is empty for all namespaces and for cluster-scoped resources.
	namespace string
	// fields and labels select; empty selects everything.
	fields, labels string
	// slim implements Slim; nil is [Slim].
	slim func(runtime.Object)
}

var _ Slimmer = (*source)(nil)

// Slim implements [Slimmer].
func (s *source) Slim(obj runtime.Object) {
	if s.slim == nil {
		Slim(obj)
		return
	}
	s.slim(obj)
}

// ListWithContext reads one page.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, s.client.callTimeout)
	defer cancel()
	options.FieldSelector, options.LabelSelector = s.fields, s.labels
	list := s.newList()
	err := s.client.core.Get().NamespaceIfScoped(s.namespace, s.namespace != "").Resource(s.resource).
		VersionedParams(&options, s.client.params).Do(ctx).Into(list)
	if err != nil {
		return nil, call{verb: "list", resource: s.resource}.fail(err)
	}
	s.Slim(list)
	return list, nil
}

// WatchWithContext opens a watch, see [OpenWatch].
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector, options.LabelSelector = s.fields, s.labels
	options.Watch = true
	request := s.client.core.Get().NamespaceIfScoped(s.namespace, s.namespace != "").Resource(s.resource).VersionedParams(&options, s.client.params)
	opened, err := OpenWatch(ctx, s.client.callTimeout, request.Watch)
	return opened, call{verb: "watch", resource: s.resource}.fail(err)
}

// OpenWatch opens a watch. It fails if the API server has not begun to answer within the timeout. An open watch ends
// only with ctx, or when the server ends it.
func OpenWatch(ctx context.Context, timeout time.Duration, open func(context.Context) (watch.Interface, error)) (watch.Interface, error) {
	ctx, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(timeout, cancel)
	opened, err := open(ctx)
	if !late.Stop() {
		if err == nil {
			opened.Stop()
		}
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &endingWatch{Interface: opened, end: cancel}, nil
}

// endingWatch releases its context when it is stopped.
type endingWatch struct {
	watch.Interface
	end context.CancelFunc
}

func (w *endingWatch) Stop() {
	w.Interface.Stop()
	w.end()
}
