package kotsadm

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// bootstrapExpect is rqlite's flag for the expected number of members.
const bootstrapExpect = "-bootstrap-expect"

func factsOf(s *appsv1.StatefulSet) journal.KotsadmFacts {
	facts := journal.KotsadmFacts{UID: string(s.UID), Generation: s.Generation, Replicas: 1}
	if s.Spec.Replicas != nil {
		facts.Replicas = int(*s.Spec.Replicas)
	}
	if containers := s.Spec.Template.Spec.Containers; len(containers) > 0 {
		facts.Image = containers[0].Image
		if at, attached := findExpect(containers[0].Args); at >= 0 {
			facts.Expect = strings.TrimPrefix(containers[0].Args[at], attached)
		}
	}
	return facts
}

// findExpect returns the index of the argument with the number of members, and the text before the number. It returns
// -1 if there is none. It must not match a rqlite flag whose name only begins the same.
func findExpect(args []string) (at int, attached string) {
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, bootstrapExpect+"="):
			return i, bootstrapExpect + "="
		case arg == bootstrapExpect && i+1 < len(args):
			return i + 1, ""
		}
	}
	return -1, ""
}

// withReplicas returns the object with this number of replicas. If the first container has the argument for the number
// of members, it sets that argument, too.
func withReplicas(raw json.RawMessage, replicas int) (json.RawMessage, error) {
	return kube.Edit(Ref, raw, func(object map[string]any) error {
		value, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "template", "spec", "containers")
		if containers, _ := value.([]any); len(containers) > 0 {
			container, _ := containers[0].(map[string]any)
			args, _, _ := unstructured.NestedStringSlice(container, "args")
			if at, attached := findExpect(args); at >= 0 {
				container["args"].([]any)[at] = attached + fmt.Sprint(replicas)
			}
		}
		return unstructured.SetNestedField(object, int64(replicas), "spec", "replicas")
	})
}
