package loadbalancer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// listKey is both the name of the ConfigMap and its key.
const listKey = "update-internallb"

// ErrOtherList says that the ConfigMap is not the one to write.
var ErrOtherList = errors.New("the ConfigMap was created, replaced or deleted by another program")

// List is the ConfigMap that lists the nodes once their load balancers are up to date.
type List struct {
	objects kube.Objects
	ref     kube.Ref
}

// NewList returns the List of a namespace, and sends no request.
func NewList(objects kube.Objects, namespace string) *List {
	return &List{objects, kube.Ref{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: listKey}}
}

// Subject returns its name in the journal.
func (l *List) Subject() journal.Subject { return journal.LoadBalancerList(l.ref.Namespace) }

// Read returns the facts of the ConfigMap. They are empty if there is none.
func (l *List) Read(ctx context.Context) (journal.LoadBalancerListFacts, error) {
	raw, err := l.objects.ReadObject(ctx, l.ref)
	if errors.Is(err, kube.ErrNotFound) {
		return journal.LoadBalancerListFacts{}, nil
	}
	if err != nil {
		return journal.LoadBalancerListFacts{}, kube.Lacking(err, "get", "configmaps")
	}
	return l.facts(raw)
}

func (l *List) facts(raw json.RawMessage) (facts journal.LoadBalancerListFacts, err error) {
	var object struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return facts, fmt.Errorf("read %s: %w", l.ref, err)
	}
	return journal.LoadBalancerListFacts{UID: object.Metadata.UID, Sum: journal.SumOfLoadBalancers(object.Data[listKey])}, nil
}

// Write sets the list in the ConfigMap of that UID, and keeps its other data. Without a UID it
// creates the ConfigMap. It returns [ErrOtherList] if the ConfigMap is another one or gone: to
// delete it requests a rewrite of all load balancers, which comes first.
func (l *List) Write(ctx context.Context, wanted journal.LoadBalancerListInput) (journal.LoadBalancerListFacts, error) {
	if wanted.UID == "" {
		return l.create(ctx, wanted.List)
	}
	raw, err := l.objects.ReadObject(ctx, l.ref)
	if errors.Is(err, kube.ErrNotFound) {
		return journal.LoadBalancerListFacts{}, ErrOtherList
	}
	if err != nil {
		return journal.LoadBalancerListFacts{}, kube.Lacking(err, "get", "configmaps")
	}
	facts, err := l.facts(raw)
	if err != nil || facts.UID != wanted.UID {
		return facts, errors.Join(err, ErrOtherList)
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return facts, fmt.Errorf("read %s: %w", l.ref, err)
	}
	data, _ := object["data"].(map[string]any)
	if data == nil {
		data = map[string]any{}
	}
	data[listKey] = wanted.List
	object["data"] = data
	if raw, err = json.Marshal(object); err == nil {
		raw, err = l.objects.ReplaceObject(ctx, l.ref, raw)
	}
	if err != nil {
		return facts, kube.Lacking(err, "update", "configmaps")
	}
	return l.facts(raw)
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
		return facts, kube.Lacking(err, "create", "configmaps")
	}
	return l.facts(raw)
}
