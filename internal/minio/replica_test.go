package minio_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
)

func TestAllReplicasThatRunAreAskedAndNoOthers(t *testing.T) {
	m, client := installed()
	for i := range 4 {
		m.Run(i, miniosim.Pod{Node: "a"})
	}
	m.Run(4, miniosim.Pod{Message: "0/3 nodes are available"})
	m.Edit(minio.PodRef(miniosim.Namespace, 2), func(object map[string]any) { delete(object["status"].(map[string]any), "podIP") })
	m.Silence(3, true)
	m.Heal(1, 2)
	var said []string
	for _, one := range client.Ask(t.Context(), minio.WithoutYou) {
		said = append(said, fmt.Sprintf("%s %t %d of %d: %v", one.Pod, one.Yes, one.Healing, one.Quorum, one.Err))
	}
	want := []string{
		"ha-minio-0 false 2 of 4: <nil>", "ha-minio-1 false 1 of 4: <nil>",
		"ha-minio-2 false 0 of 0: it runs but has no address yet",
		"ha-minio-3 false 0 of 0: ask MinIO at ha-minio-3 for its health: connection refused",
	}
	if got := strings.Join(said, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("said:\n%s", got)
	}
	m.Forbid("get statefulsets")
	if said := client.Ask(t.Context(), minio.Now); len(said) != 1 || !errors.Is(said[0].Err, kube.ErrForbidden) {
		t.Errorf("what cannot be read: %+v", said)
	}
}

func TestAClaimAndAPodAreDeletedByTheirUIDsAndStayUntilTheyHaveEnded(t *testing.T) {
	m, client := installed()
	pod := m.Run(0, miniosim.Pod{Node: "a"})
	claim, exists, err := client.Claim(t.Context(), "ha-minio-0")
	if err != nil || !exists || claim.Ends {
		t.Fatalf("%v: the claim is %+v", err, claim)
	}
	for range 2 {
		if err := errors.Join(client.DeleteClaim(t.Context(), "ha-minio-0", claim.UID), client.DeletePod(t.Context(), "ha-minio-0", pod)); err != nil {
			t.Error(err)
		}
		if claim, exists, err := client.Claim(t.Context(), "ha-minio-0"); err != nil || !exists || !claim.Ends {
			t.Errorf("%v: the claim is %+v", err, claim)
		}
	}
	m.Reconcile()
	if _, exists, err := client.Claim(t.Context(), "ha-minio-0"); err != nil || exists {
		t.Errorf("%v: the claim is there: %t", err, exists)
	}
	if err := client.DeletePod(t.Context(), "ha-minio-0", pod); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("a pod that is gone: %v", err)
	}
}
