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

// Slimmer is implemented by a [Source] that can remove unneeded fields from its objects.
type Slimmer interface {
	// Slim removes unneeded fields from an object, or from each object in a list.
	Slim(obj runtime.Object)
}

// Nodes returns the source of all Nodes. The objects in its lists have only the fields that [NodeLabelled] needs. Its
// watches return whole objects.
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

// PodsOn returns the source of the Pods on a node, or of all Pods if node is empty, in all namespaces. The objects in its
// lists have only the fields that [PodOf] needs and the grace period. Its watches return whole objects.
func (c *Client) PodsOn(node string) Source {
	s := &source{client: c, resource: "pods", newList: func() runtime.Object { return &corev1.PodList{} }}
	if node != "" {
		s.fields = fields.OneTermEqualSelector("spec.nodeName", node).String()
	}
	return s
}

// PodsLabelled returns the source of the Pods with a label in a namespace. The objects in its lists have only the fields
// that [PodWithStatusOf] needs. Its watches return whole objects.
func (c *Client) PodsLabelled(namespace, label, value string) Source {
	return &source{
		client: c, resource: "pods", newList: func() runtime.Object { return &corev1.PodList{} },
		namespace: namespace, labels: labels.Set{label: value}.String(), slim: SlimWithStatus,
	}
}

// SecretNamed returns the source of one Secret. Its lists contain only name and version. Its watches return whole
// objects.
func (c *Client) SecretNamed(namespace, name string) Source {
	return &source{
		client: c, resource: "secrets", newList: func() runtime.Object { return &corev1.SecretList{} },
		namespace: namespace, fields: fields.OneTermEqualSelector("metadata.name", name).String(), slim: SlimSecret,
	}
}

// SlimSecret removes all fields except name and version from a Secret, or from each Secret in a list.
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

// SlimWithStatus is [Slim], but keeps the fields that PodWithStatusOf needs.
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

// Slim removes the fields that NodeOf or PodOf do not need from a Node or Pod, or from each Node or Pod in a list. It
// does not change other objects.
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
	// fields and labels are selectors. An empty selector selects all objects.
	fields, labels string
	// slim is called by the method Slim. If it is nil, the method calls the function [Slim].
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

// WatchWithContext opens a watch; see [OpenWatch].
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector, options.LabelSelector = s.fields, s.labels
	options.Watch = true
	request := s.client.core.Get().NamespaceIfScoped(s.namespace, s.namespace != "").Resource(s.resource).VersionedParams(&options, s.client.params)
	opened, err := OpenWatch(ctx, s.client.callTimeout, request.Watch)
	return opened, call{verb: "watch", resource: s.resource}.fail(err)
}

// OpenWatch calls open to open a watch. It fails if the API server has not begun to answer within the timeout. An open
// watch ends only with ctx, or when the server ends it.
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
