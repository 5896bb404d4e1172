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
	// filesystemLabel is the label of MDS pods with the name of their filesystem.
	filesystemLabel = "rook_file_system"
	zoneOfNode      = "topology.kubernetes.io/zone"
)

// separateBy returns an anti-affinity term for MDS pods: they do not share the topology, such as a host.
func separateBy(topologyKey string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: topologyKey, LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{mdsApp}}},
	}}
}

// spreadMDS is the anti-affinity that EKCO sets: two MDS pods never share a host, and share a zone only if necessary.
var spreadMDS = corev1.PodAntiAffinity{
	RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{separateBy(hostnameOfNode)},
	PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: separateBy(zoneOfNode)}},
}

// comparePlacement reports whether the anti-affinity is kURL's setting for a single node, or EKCO's [spreadMDS].
func comparePlacement(antiAffinity json.RawMessage) (oneNode, isSpread bool) {
	var set corev1.PodAntiAffinity
	if json.Unmarshal(antiAffinity, &set) != nil {
		return false, false
	}
	return isOneNode(set), reflect.DeepEqual(set, spreadMDS)
}

// isOneNode reports whether the anti-affinity is kURL's setting for a single node: exactly two preferred rules, for
// hosts and zones.
func isOneNode(set corev1.PodAntiAffinity) bool {
	preferred := set.PreferredDuringSchedulingIgnoredDuringExecution
	if len(set.RequiredDuringSchedulingIgnoredDuringExecution) > 0 || len(preferred) != 2 {
		return false
	}
	hosts, zones := 0, 0
	for _, term := range preferred {
		key := term.PodAffinityTerm.TopologyKey
		switch {
		case !reflect.DeepEqual(term.PodAffinityTerm, separateBy(key)):
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

// patchMDS returns a patch that replaces kURL's unchanged anti-affinity by [spreadMDS].
func (o podsObject) patchMDS() []kube.PatchOp {
	return []kube.PatchOp{
		{Op: "test", Path: "/metadata/uid", Value: o.UID},
		{Op: "test", Path: antiAffinityOfMDS, Value: o.Spec.MetadataServer.Placement.AntiAffinity},
		{Op: "replace", Path: antiAffinityOfMDS, Value: spreadMDS},
	}
}

// podsOf returns Rook's pods with the label app.
func (p *Pods) podsOf(ctx context.Context, app string) ([]corev1.Pod, error) {
	return kube.List[corev1.Pod](ctx, p.objects, podsRef(), "app", app)
}

// mdsHosts returns the sorted names of the nodes with ready MDS pods of the filesystem.
func (p *Pods) mdsHosts(ctx context.Context, of journal.Subject) (hosts []string, err error) {
	pods, err := p.podsOf(ctx, mdsApp)
	for _, pod := range pods {
		if isMDSOf(&pod, of) && kube.PodReady(&pod) {
			hosts = append(hosts, pod.Spec.NodeName)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), err
}

// isMDSOf reports whether the MDS pod belongs to the filesystem.
func isMDSOf(p *corev1.Pod, of journal.Subject) bool {
	return p.Labels[filesystemLabel] == journal.MDSFilesystem(of)
}

// MDSPods returns a text with the node and the state of each MDS pod of a filesystem.
func (p *Pods) MDSPods(ctx context.Context, of journal.Subject) ([]string, error) {
	pods, err := p.podsOf(ctx, mdsApp)
	var states []string
	for _, pod := range pods {
		if isMDSOf(&pod, of) {
			states = append(states, describePod(&pod))
		}
	}
	slices.Sort(states)
	return states, err
}

// describePod returns a text with the pod's node and state.
func describePod(p *corev1.Pod) string {
	switch {
	case p.Spec.NodeName == "":
		return p.Name + " has no node yet"
	case kube.PodReady(p):
		return p.Name + " runs on " + p.Spec.NodeName
	}
	return p.Name + " is not ready on " + p.Spec.NodeName
}
