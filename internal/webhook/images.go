package webhook

import (
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// maxPatch limits the replacements in one patch, in bytes. etcd stores no object as large as that.
const maxPatch = 2 << 20

// pod has the fields of a core/v1 Pod that are needed. The type of k8s.io/api would let a forged request with many empty
// containers allocate 300 times its own size.
type pod struct {
	Metadata struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
	} `json:"metadata"`
	Spec struct {
		InitContainers      []container `json:"initContainers"`
		Containers          []container `json:"containers"`
		EphemeralContainers []container `json:"ephemeralContainers"`
	} `json:"spec"`
}

type container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// lists returns the containers by the name of their field.
func (p *pod) lists() [3]containers {
	return [3]containers{
		{"initContainers", p.Spec.InitContainers}, {"containers", p.Spec.Containers}, {"ephemeralContainers", p.Spec.EphemeralContainers},
	}
}

type containers struct {
	field string
	all   []container
}

// replaceImages replaces each image that equals the original of an override. An update replaces only images that it
// changes: otherwise the first change of a label would restart a container, and a replacement that is itself the original
// of another override would be replaced again.
func (h *Handler) replaceImages(request *admissionv1.AdmissionRequest) ([]kube.PatchOp, error) {
	var now, before pod
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	if err := decode(request, request.Object.Raw, &now, kind); err != nil {
		return nil, err
	}
	if request.Operation == admissionv1.Update {
		if err := decode(request, request.OldObject.Raw, &before, kind); err != nil {
			return nil, err
		}
	}
	var patch []kube.PatchOp
	var replaced []Override
	size := 0
	former := before.lists()
	for i, list := range now.lists() {
		images := make(map[string]string, len(former[i].all))
		for _, c := range former[i].all {
			images[c.Name] = c.Image
		}
		for j, c := range list.all {
			replacement, overridden := h.replacements[c.Image]
			if was, existed := images[c.Name]; !overridden || existed && was == c.Image {
				continue
			}
			if size += len(replacement); size > maxPatch {
				return nil, fmt.Errorf("replace the images of pod %s/%s: the patch would have more than %d bytes", request.Namespace, now.name(), maxPatch)
			}
			patch = append(patch, kube.PatchOp{Op: "replace", Path: fmt.Sprintf("/spec/%s/%d/image", list.field, j), Value: replacement})
			replaced = append(replaced, Override{c.Image, replacement})
		}
	}
	for _, override := range replaced {
		h.options.Replaced(override)
		h.options.Log.Debug("replaced an image", "namespace", request.Namespace, "pod", now.name(), "original", override.Original, "replacement", override.Replacement)
	}
	return patch, nil
}

// name returns the name of the pod, or its beginning if the API server completes it.
func (p *pod) name() string {
	if p.Metadata.Name != "" {
		return p.Metadata.Name
	}
	return p.Metadata.GenerateName
}
