package kotsadm

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/replicatedhq/ekco/actions/object"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Ref identifies the StatefulSet.
var Ref = kube.Ref{Group: "apps", Version: "v1", Resource: "statefulsets", Namespace: "default", Name: "kotsadm-rqlite"}

// PodRef identifies one of its pods.
func PodRef(i int) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: Ref.Namespace, Name: fmt.Sprintf("%s-%d", Ref.Name, i)}
}

// Object returns how EKCO reads the StatefulSet without a cache.
func Object(objects kube.Objects) object.Object[journal.KotsadmFacts] {
	return object.Object[journal.KotsadmFacts]{
		Noun: "StatefulSet", UID: func(facts journal.KotsadmFacts) string { return facts.UID },
		Read: func(ctx context.Context, _ journal.Subject) (journal.KotsadmFacts, error) {
			read, err := kube.Get[appsv1.StatefulSet](ctx, objects, Ref)
			return factsOf(&read), err
		},
	}
}

// scale sets the replicas of the StatefulSet with this UID and the number of rqlite members in one update, and returns
// the new facts. It replaces the whole object in the version that it read: kURL's permissions allow no patch, and not
// the scale subresource.
func scale(ctx context.Context, objects kube.Objects, uid string) (journal.KotsadmFacts, error) {
	return kube.Change[appsv1.StatefulSet, journal.KotsadmFacts]{
		Ref: Ref, UID: uid, Lacks: missingReason,
		Facts: func(read *appsv1.StatefulSet) (journal.KotsadmFacts, string, error) {
			return factsOf(read), string(read.UID), nil
		},
		Write: func(raw json.RawMessage, _ *appsv1.StatefulSet) (json.RawMessage, error) {
			scaled, err := withReplicas(raw, journal.KotsadmReplicas)
			if err != nil {
				return nil, err
			}
			return objects.ReplaceObject(ctx, Ref, scaled)
		},
	}.Make(ctx, objects)
}

// missingReason returns a reason if the specification has other replicas or members, or "".
func missingReason(now journal.KotsadmFacts) string {
	if now.Scaled() {
		return ""
	}
	return fmt.Sprintf("its spec has %s replicas, want %d", now.Size(), journal.KotsadmReplicas)
}
