package webhook

import (
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// workload has the field of a Deployment or DaemonSet that is needed; see [pod].
type workload struct {
	Spec struct {
		Template struct {
			Spec struct {
				PriorityClassName string `json:"priorityClassName"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// setPriority sets the priority class of a Deployment or DaemonSet that has none.
func (h *Handler) setPriority(request *admissionv1.AdmissionRequest) ([]kube.PatchOp, error) {
	var object workload
	if err := decode(request, request.Object.Raw, &object,
		metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	); err != nil {
		return nil, err
	}
	if h.options.PriorityClass == "" || object.Spec.Template.Spec.PriorityClassName != "" {
		return nil, nil
	}
	return []kube.PatchOp{{Op: "add", Path: "/spec/template/spec/priorityClassName", Value: h.options.PriorityClass}}, nil
}
