package rook

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

const (
	mdsApp = "rook-ceph-mds"
	// filesystemLabel is on the pods of MDS, with the name of their filesystem.
	filesystemLabel = "rook_file_system"
	zoneOfNode      = "topology.kubernetes.io/zone"
)

// apartBy returns the affinity term for MDS that must not share the topology key.
func apartBy(topologyKey string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{mdsApp}}},
	}}
}

// spread makes the MDS never share a host, and no zone if possible.
var spread = corev1.PodAntiAffinity{
	RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{apartBy(hostnameOfNode)},
	PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apartBy(zoneOfNode)}},
}

// placed reports whether the anti-affinity is the one that kURL sets on a single node, or EKCO's [spread].
func placed(antiAffinity json.RawMessage) (oneNode, isSpread bool) {
	var set corev1.PodAntiAffinity
	if json.Unmarshal(antiAffinity, &set) != nil {
		return false, false
	}
	return isOneNode(set), reflect.DeepEqual(set, spread)
}

// isOneNode reports whether there are exactly two rules, for hosts and zones, and both are only preferred.
func isOneNode(set corev1.PodAntiAffinity) bool {
	preferred := set.PreferredDuringSchedulingIgnoredDuringExecution
	if len(set.RequiredDuringSchedulingIgnoredDuringExecution) > 0 || len(preferred) != 2 {
		return false
	}
	hosts, zones := 0, 0
	for _, term := range preferred {
		key := term.PodAffinityTerm.TopologyKey
		switch {
		case !reflect.DeepEqual(term.PodAffinityTerm, apartBy(key)):
			return false
		case key == hostnameOfNode:
			hosts++
		case strings.HasSuffix(key, "/zone"):
			zones++
		}
	}
	return hosts == 1 && zones == 1
}

const antiAffinityOfMDS = "/spec/metadataServer/placement/podAntiAffinity"

// patchMDS replaces kURL's anti-affinity by [spread], if it is unchanged.
func (o podsObject) patchMDS() []kube.PatchOp {
	return []kube.PatchOp{
		{Op: "test", Path: "/metadata/uid", Value: o.UID},
		{Op: "test", Path: antiAffinityOfMDS, Value: o.Spec.MetadataServer.Placement.AntiAffinity},
		{Op: "replace", Path: antiAffinityOfMDS, Value: spread},
	}
}

// podsOf returns Rook's pods with this value of the label app.
func (p *Pods) podsOf(ctx context.Context, app string) ([]corev1.Pod, error) {
	return kube.List[corev1.Pod](ctx, p.objects, podsRef(), "app", app)
}

// mdsHosts returns the sorted nodes with ready MDS of the filesystem.
func (p *Pods) mdsHosts(ctx context.Context, of journal.Subject) (hosts []string, err error) {
	pods, err := p.podsOf(ctx, mdsApp)
	for _, pod := range pods {
		if serves(&pod, of) && kube.PodReady(&pod) {
			hosts = append(hosts, pod.Spec.NodeName)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), err
}

// serves reports whether the pod is an MDS of the filesystem.
func serves(p *corev1.Pod, of journal.Subject) bool {
	return p.Labels[filesystemLabel] == journal.MDSFilesystem(of)
}

// MDSPods returns the node and state of each MDS pod of a filesystem, as text.
func (p *Pods) MDSPods(ctx context.Context, of journal.Subject) ([]string, error) {
	pods, err := p.podsOf(ctx, mdsApp)
	var states []string
	for _, pod := range pods {
		if serves(&pod, of) {
			states = append(states, said(&pod))
		}
	}
	slices.Sort(states)
	return states, err
}

// said returns the pod's node and whether it is ready.
func said(p *corev1.Pod) string {
	switch {
	case p.Spec.NodeName == "":
		return p.Name + " has no node yet"
	case kube.PodReady(p):
		return p.Name + " runs on " + p.Spec.NodeName
	}
	return p.Name + " is not ready on " + p.Spec.NodeName
}
