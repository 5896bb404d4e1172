package kube

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kubeadm"
)

// APIServerPod is a mirror pod of kube-apiserver on a primary.
type APIServerPod struct {
	Name, Node string
	// AdvertiseEndpoint is ADDRESS:PORT, or empty if kubeadm has not set it. kubeadm.ParseAdvertiseAddress parses it.
	AdvertiseEndpoint string
}

// APIServerPods lists the mirror pods of kube-apiserver, sorted by name, including those of lost primaries
// until their Node is deleted.
func (c *Client) APIServerPods(ctx context.Context) ([]APIServerPod, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	var list corev1.PodList
	err := c.core.Get().Namespace(metav1.NamespaceSystem).Resource("pods").
		VersionedParams(&metav1.ListOptions{LabelSelector: kubeadm.APIServerSelector}, c.params).Do(ctx).Into(&list)
	if err != nil {
		return nil, call{verb: "list", resource: "pods"}.fail(err)
	}
	pods := make([]APIServerPod, 0, len(list.Items))
	for _, pod := range list.Items {
		pods = append(pods, APIServerPod{
			Name: pod.Name, Node: pod.Spec.NodeName,
			AdvertiseEndpoint: pod.Annotations[kubeadm.AdvertiseAddressAnnotation],
		})
	}
	slices.SortFunc(pods, func(a, b APIServerPod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}
