package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// Resident has the fields of a pod on a node that a purge needs.
type Resident struct {
	Namespace, Name string
	// Controller is the controller that recreates the pod, if any.
	Controller Controller
	// Claims are the names of the PersistentVolumeClaims that the pod uses.
	Claims []string
	// Terminating is set if the pod is being deleted: a controller has replaced it already.
	Terminating bool
}

// LocalVolume is a PersistentVolume that exists on one node only. Claim is the "namespace/name" of its claim, or empty
// if the volume is unbound.
type LocalVolume struct{ Name, Claim string }

// residentsPerPage limits the memory of one page of a list.
const residentsPerPage = 250

// Residents lists the pods on a node that have not ended.
func (c *Client) Residents(ctx context.Context, node string) ([]Resident, error) {
	var residents []Resident
	options := metav1.ListOptions{Limit: residentsPerPage, FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	for {
		var page corev1.PodList
		if err := c.page(ctx, "pods", options, &page); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if pod := &page.Items[i]; pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				residents = append(residents, residentOf(pod))
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return residents, nil
		}
	}
}

func residentOf(pod *corev1.Pod) Resident {
	resident := Resident{Namespace: pod.Namespace, Name: pod.Name, Terminating: pod.DeletionTimestamp != nil}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		resident.Controller = Controller{Kind: owner.Kind, Name: owner.Name}
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			resident.Claims = append(resident.Claims, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return resident
}

// LocalVolumes lists the PersistentVolumes that only the machine with that hostname can have.
func (c *Client) LocalVolumes(ctx context.Context, hostname string) ([]LocalVolume, error) {
	var volumes []LocalVolume
	options := metav1.ListOptions{Limit: residentsPerPage}
	for {
		var page corev1.PersistentVolumeList
		if err := c.page(ctx, "persistentvolumes", options, &page); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if volume := &page.Items[i]; onlyOn(volume, hostname) {
				volumes = append(volumes, localVolumeOf(volume))
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return volumes, nil
		}
	}
}

func (c *Client) page(ctx context.Context, resource string, options metav1.ListOptions, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.core.Get().Resource(resource).VersionedParams(&options, c.params).Do(ctx).Into(into)
	return call{verb: "list", resource: resource}.fail(err)
}

func localVolumeOf(volume *corev1.PersistentVolume) LocalVolume {
	local := LocalVolume{Name: volume.Name}
	if claim := volume.Spec.ClaimRef; claim != nil {
		local.Claim = claim.Namespace + "/" + claim.Name
	}
	return local
}

// onlyOn reports whether every term of the volume's affinity requires that host.
func onlyOn(volume *corev1.PersistentVolume, hostname string) bool {
	affinity := volume.Spec.NodeAffinity
	if affinity == nil || affinity.Required == nil || len(affinity.Required.NodeSelectorTerms) == 0 {
		return false
	}
	for _, term := range affinity.Required.NodeSelectorTerms {
		if !names(term, hostname) {
			return false
		}
	}
	return true
}

func names(term corev1.NodeSelectorTerm, hostname string) bool {
	for _, e := range term.MatchExpressions {
		if e.Key == LabelHostname && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 && e.Values[0] == hostname {
			return true
		}
	}
	return false
}
