package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// prioritized are the values of label app of the Deployments whose pods get a priority class.
var prioritized = []string{OSDApp, mdsApp, "rook-ceph-mgr", "rook-ceph-mon"}

// NodeCritical is the priority class that EKCO creates if it is configured and missing.
const (
	NodeCritical      = "node-critical"
	nodeCriticalValue = 1_000_000_000
)

// Workloads returns the workloads whose pods get a priority class: the Deployments of Rook's daemons, and the
// DaemonSet of its agent if there is one.
func (p *Pods) Workloads(ctx context.Context) (map[journal.Subject]journal.RookPodsFacts, error) {
	found := map[journal.Subject]journal.RookPodsFacts{}
	deployments, err := p.deployments(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range deployments {
		if slices.Contains(prioritized, d.Labels["app"]) {
			of := journal.RookWorkload(journal.KindDeployment, d.Name)
			found[of] = d.facts(Installed{}, of)
		}
	}
	agent, err := p.object(ctx, journal.RookAgent)
	switch sentinel := kube.Sentinel(err); {
	case errors.Is(sentinel, kube.ErrNotFound): // Rook has no agent since it uses CSI
	case err != nil:
		return nil, err
	default:
		found[journal.RookAgent] = agent.facts(Installed{}, journal.RookAgent)
	}
	return found, nil
}

// deployments returns all Deployments of Rook's namespace.
func (p *Pods) deployments(ctx context.Context) ([]podsObject, error) {
	return kube.List[podsObject](ctx, p.objects, deploymentRef(""), "", "")
}

// rollout is the status that a controller reports for its workload.
type rollout struct {
	ObservedGeneration int64 `json:"observedGeneration"`
	// The fields of a Deployment.
	Replicas  int `json:"replicas"`
	Updated   int `json:"updatedReplicas"`
	Available int `json:"availableReplicas"`
	// The fields of a DaemonSet.
	Desired         int `json:"desiredNumberScheduled"`
	UpdatedOnNodes  int `json:"updatedNumberScheduled"`
	NumberAvailable int `json:"numberAvailable"`
}

// rolloutProblem returns the reason why the workload is not rolled out, or "".
func (o podsObject) rolloutProblem(kind string) string {
	wanted, now := 1, o.Status
	if o.Spec.Replicas != nil {
		wanted = *o.Spec.Replicas
	}
	if kind == journal.KindDaemonSet {
		wanted, now.Replicas, now.Updated, now.Available = now.Desired, now.Desired, now.UpdatedOnNodes, now.NumberAvailable
	}
	switch {
	case now.ObservedGeneration < o.Generation:
		return "its controller has not seen the change yet"
	case now.Updated < wanted, now.Available < wanted:
		return fmt.Sprintf("%d of %d pods are new, and %d are available", now.Updated, wanted, now.Available)
	case now.Replicas > wanted:
		return fmt.Sprintf("there are %d pods, want %d", now.Replicas, wanted)
	}
	return ""
}

// RolledOut reads a workload live. It returns the reason why the workload is not rolled out, or "".
func (p *Pods) RolledOut(ctx context.Context, of journal.Subject) (facts journal.RookPodsFacts, lacks string, err error) {
	object, err := p.object(ctx, of)
	if err != nil {
		return journal.RookPodsFacts{}, "", err
	}
	return object.facts(Installed{}, of), object.rolloutProblem(of.Kind), nil
}

// OthersRolledOut returns the name of another Deployment of the same daemon that is not rolled out, with the reason. It
// returns "" if all other Deployments are rolled out.
func (p *Pods) OthersRolledOut(ctx context.Context, of journal.Subject, daemon string) (lacks string, err error) {
	deployments, err := p.deployments(ctx)
	if err != nil {
		return "", err
	}
	slices.SortFunc(deployments, func(a, b podsObject) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range deployments {
		other := journal.RookWorkload(journal.KindDeployment, d.Name)
		if other.Name == of.Name || d.daemon() != daemon {
			continue
		}
		if lacks := d.rolloutProblem(other.Kind); lacks != "" {
			return "Deployment " + other.Name + " is not rolled out: " + lacks, nil
		}
	}
	return "", nil
}

// PriorityClassRef names a priority class.
func PriorityClassRef(name string) kube.Ref {
	return kube.Ref{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses", Name: name}
}

// HasPriorityClass reports whether the priority class exists.
func (p *Pods) HasPriorityClass(ctx context.Context, name string) (bool, error) {
	_, err := p.objects.ReadObject(ctx, PriorityClassRef(name))
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// CreatePriorityClass creates the class [NodeCritical] if it does not exist. It returns an error for other names.
func (p *Pods) CreatePriorityClass(ctx context.Context, name string) error {
	if name != NodeCritical {
		return fmt.Errorf("create the priority class %s: EKCO creates only the priority class %s; create %s yourself, or configure another", name, NodeCritical, name)
	}
	class, err := json.Marshal(map[string]any{
		"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]string{"name": name},
		"value": nodeCriticalValue, "description": "Pods of Rook that a node with storage needs.",
	})
	if err != nil {
		return err
	}
	_, err = p.objects.CreateObject(ctx, PriorityClassRef(name), class)
	if errors.Is(err, kube.ErrConflict) {
		return nil
	}
	return err
}
