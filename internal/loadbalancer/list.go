package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// listKey is both the name of the ConfigMap and its key.
const listKey = "update-internallb"

// ErrOtherList means that the ConfigMap has another UID than expected.
var ErrOtherList = errors.New("the ConfigMap was created, replaced or deleted by another program")

// List is the ConfigMap that lists the nodes whose load balancers are up to date.
type List struct {
	objects kube.Objects
	ref     kube.Ref
}

// NewList returns the List of a namespace, and sends no request.
func NewList(objects kube.Objects, namespace string) *List {
	return &List{objects, kube.Ref{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: listKey}}
}

// Subject returns the name of the ConfigMap in the journal.
func (l *List) Subject() journal.Subject { return journal.LoadBalancerList(l.ref.Namespace) }

// Read returns the facts of the ConfigMap, or empty facts if there is no ConfigMap.
func (l *List) Read(ctx context.Context) (journal.LoadBalancerListFacts, error) {
	object, err := kube.Get[corev1.ConfigMap](ctx, l.objects, l.ref)
	if errors.Is(err, kube.ErrNotFound) {
		return journal.LoadBalancerListFacts{}, nil
	}
	return factsOf(&object), kube.NamePermission(err, "get", "configmaps")
}

func factsOf(object *corev1.ConfigMap) journal.LoadBalancerListFacts {
	return journal.LoadBalancerListFacts{UID: string(object.UID), Sum: journal.SumOfLoadBalancers(object.Data[listKey])}
}

// Write sets the list in the ConfigMap with the wanted UID, and keeps its other data. Without a UID it creates the
// ConfigMap. It returns [ErrOtherList] if the ConfigMap has another UID or is gone: deleting the ConfigMap is a request
// to rewrite all load balancers, which EKCO must do first.
func (l *List) Write(ctx context.Context, wanted journal.LoadBalancerListInput) (journal.LoadBalancerListFacts, error) {
	if wanted.UID == "" {
		return l.create(ctx, wanted.List)
	}
	raw, err := l.objects.ReadObject(ctx, l.ref)
	if errors.Is(err, kube.ErrNotFound) {
		return journal.LoadBalancerListFacts{}, ErrOtherList
	}
	if err != nil {
		return journal.LoadBalancerListFacts{}, kube.NamePermission(err, "get", "configmaps")
	}
	facts, err := l.facts(raw)
	if err != nil || facts.UID != wanted.UID {
		return facts, errors.Join(err, ErrOtherList)
	}
	raw, err = kube.Edit(l.ref, raw, func(object map[string]any) error {
		return unstructured.SetNestedField(object, wanted.List, "data", listKey)
	})
	if err == nil {
		raw, err = l.objects.ReplaceObject(ctx, l.ref, raw)
	}
	if err != nil {
		return facts, kube.NamePermission(err, "update", "configmaps")
	}
	return l.facts(raw)
}

func (l *List) facts(raw json.RawMessage) (journal.LoadBalancerListFacts, error) {
	object, err := kube.Decode[corev1.ConfigMap](l.ref, raw, nil)
	return factsOf(&object), err
}

func (l *List) create(ctx context.Context, list string) (facts journal.LoadBalancerListFacts, err error) {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": l.ref.Name, "namespace": l.ref.Namespace},
		"data":     map[string]any{listKey: list},
	})
	if err == nil {
		raw, err = l.objects.CreateObject(ctx, l.ref, raw)
	}
	if errors.Is(err, kube.ErrConflict) {
		return facts, ErrOtherList
	}
	if err != nil {
		return facts, kube.NamePermission(err, "create", "configmaps")
	}
	return l.facts(raw)
}
