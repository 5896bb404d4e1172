package rook

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// podsObject is the part that EKCO reads of an object with settings of Rook's pods, for all kinds of these objects.
type podsObject struct {
	metav1.ObjectMeta `json:"metadata"`
	// Data is the data of a ConfigMap.
	Data map[string]string `json:"data"`
	Spec struct {
		// MetadataServer is a field of a CephFilesystem.
		MetadataServer struct {
			Placement struct {
				AntiAffinity json.RawMessage `json:"podAntiAffinity"`
			} `json:"placement"`
		} `json:"metadataServer"`
		// Replicas and Template are fields of a Deployment or DaemonSet.
		Replicas *int `json:"replicas"`
		Template struct {
			Spec struct {
				Priority string `json:"priorityClassName"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status rollout `json:"status"`
}

func (o podsObject) facts(in Installed, of journal.Subject) journal.RookPodsFacts {
	facts := journal.RookPodsFacts{UID: string(o.UID), Generation: o.Generation}
	switch of.Kind {
	case journal.RookOperatorConfig.Kind:
		facts.Generation, facts.Unversioned = 0, in.Unknown
		if in.Version.Known {
			facts.Version = in.Version.String()
		}
		if in.Unknown != "" || in.Version.AtLeast(1, 9, 0) {
			facts.Differing = differingCSI(o.Data)
		}
	case journal.KindCephMDS:
		facts.UID = journal.MDSUID(string(o.UID))
		if o.DeletionTimestamp == nil {
			facts.OneNode, facts.Spread = comparePlacement(o.Spec.MetadataServer.Placement.AntiAffinity)
		}
	default:
		facts.Daemon, facts.Priority = o.daemon(), o.Spec.Template.Spec.Priority
	}
	return facts
}

// daemon returns the name of the Ceph daemon that a workload runs.
func (o podsObject) daemon() string {
	return strings.TrimPrefix(o.Labels["app"], "rook-ceph-")
}

// testVersion returns patch operations that fail if the object has another version than o.
func (o podsObject) testVersion() []kube.PatchOp {
	return []kube.PatchOp{
		{Op: "test", Path: "/metadata/uid", Value: o.UID},
		{Op: "test", Path: "/metadata/resourceVersion", Value: o.ResourceVersion},
	}
}

// patchPriority returns a patch that sets the priority class of a workload's pods.
func (o podsObject) patchPriority(class string) []kube.PatchOp {
	return append(o.testVersion(), kube.PatchOp{Op: "add", Path: "/spec/template/spec/priorityClassName", Value: class})
}

// withPriority returns the whole object, including its resource version, with the priority class.
func withPriority(ref kube.Ref, raw json.RawMessage, class string) (json.RawMessage, error) {
	return kube.Edit(ref, raw, func(object map[string]any) error {
		return unstructured.SetNestedField(object, class, "spec", "template", "spec", "priorityClassName")
	})
}
