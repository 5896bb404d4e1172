package rook

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/retry"

	"github.com/replicatedhq/ekco/internal/kube"
)

func clusterOf(storage string) string {
	return fmt.Sprintf(`{"metadata":{"name":"rook-ceph","uid":"c1"},"spec":{"mon":{"count":3},"storage":%s}}`, storage)
}

const (
	w1 = `{"name":"w1"}`
	w2 = `{"name":"w2","devices":[{"name":"sdb"}],"config":{"osdsPerDevice":"1"}}`
	w3 = `{"name":"w3"}`
)

func TestAStorageNodeIsTakenOffTheListAndTheRestStays(t *testing.T) {
	s, client := newServer(t, map[string]string{clusterPath: clusterOf(`{"useAllNodes":false,"nodes":[` + w1 + "," + w2 + "," + w3 + `],"deviceFilter":"sd."}`)})
	node, err := client.StorageNode(t.Context(), "node-2", "w2")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(StorageNode{ClusterUID: "c1", Name: "w2", Entry: []byte(w2)}, node); diff != "" {
		t.Errorf("captured (- wanted, + got):\n%s", diff)
	}
	removed, err := client.RemoveStorageNode(t.Context(), node)
	if err != nil || string(removed) != w2 {
		t.Errorf("removed %s, %v", removed, err)
	}
	want := clusterOf(`{"useAllNodes":false,"nodes":[` + w1 + "," + w3 + `],"deviceFilter":"sd."}`)
	if diff := cmp.Diff(canonical(t, want), canonical(t, s.object(clusterPath))); diff != "" {
		t.Errorf("written (- wanted, + got):\n%s", diff)
	}
	if removed, err := client.RemoveStorageNode(t.Context(), node); err != nil || removed != nil {
		t.Errorf("the second time removed %s, %v", removed, err)
	}
	if len(s.writes()) != 1 {
		t.Errorf("writes %q", s.writes())
	}
}

func TestAStorageListThatIsNotInUseOrNotTheSameIsLeftAlone(t *testing.T) {
	captured := StorageNode{ClusterUID: "c1", Name: "w1", Entry: []byte(w1)}
	for name, test := range map[string]struct {
		cluster string
		node    StorageNode
	}{
		"all nodes are used":      {clusterOf(`{"useAllNodes":true,"nodes":[` + w1 + `]}`), captured},
		"there is no list":        {clusterOf(`{}`), captured},
		"the list is null":        {clusterOf(`{"nodes":null}`), captured},
		"the node is not on it":   {clusterOf(`{"nodes":[` + w2 + `]}`), captured},
		"it was not on it before": {clusterOf(`{"nodes":[` + w1 + `]}`), StorageNode{ClusterUID: "c1"}},
		"another CephCluster":     {strings.Replace(clusterOf(`{"nodes":[`+w1+`]}`), "c1", "c2", 1), captured},
		"odd entries":             {clusterOf(`{"nodes":["w1",{"name":""},7]}`), captured},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t, map[string]string{clusterPath: test.cluster})
			if removed, err := client.RemoveStorageNode(t.Context(), test.node); err != nil || removed != nil {
				t.Errorf("removed %s, %v", removed, err)
			}
			if writes := s.writes(); len(writes) != 0 {
				t.Errorf("writes %q", writes)
			}
		})
	}
}

func TestAListThatMovesDuringTheRemovalIsReadAgain(t *testing.T) {
	s, client := newServer(t, map[string]string{clusterPath: clusterOf(`{"nodes":[` + w1 + "," + w2 + "," + w3 + `]}`)})
	s.before = func(objects map[string]string) {
		objects[clusterPath] = clusterOf(`{"nodes":[` + w2 + "," + w3 + `]}`)
		s.before = nil
	}
	removed, err := client.RemoveStorageNode(t.Context(), StorageNode{ClusterUID: "c1", Name: "w2"})
	if err != nil || string(removed) != w2 {
		t.Fatalf("removed %s, %v", removed, err)
	}
	if diff := cmp.Diff(canonical(t, clusterOf(`{"nodes":[`+w3+`]}`)), canonical(t, s.object(clusterPath))); diff != "" {
		t.Errorf("written (- wanted, + got):\n%s", diff)
	}
}

func TestAListThatMovesForEverIsAConflict(t *testing.T) {
	s, client := newServer(t, map[string]string{clusterPath: clusterOf(`{"nodes":[` + w1 + `]}`)})
	s.failures["PATCH "+clusterPath] = 422
	if _, err := client.RemoveStorageNode(t.Context(), StorageNode{ClusterUID: "c1", Name: "w1"}); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("got %v", err)
	}
	if len(s.writes()) != retry.DefaultRetry.Steps {
		t.Errorf("%d tries", len(s.writes()))
	}
}

func TestWithoutACephClusterThereIsNothingToCaptureOrRemove(t *testing.T) {
	s, client := newServer(t, nil)
	if node, err := client.StorageNode(t.Context(), "w1"); err != nil || node.ClusterUID != "" {
		t.Errorf("captured %+v, %v", node, err)
	}
	captured := StorageNode{ClusterUID: "c1", Name: "w1"}
	if removed, err := client.RemoveStorageNode(t.Context(), captured); err != nil || removed != nil {
		t.Errorf("removed %s, %v", removed, err)
	}
	s.failures["GET "+clusterPath] = 403
	if _, err := client.RemoveStorageNode(t.Context(), captured); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("a removal that is no longer permitted: %v", err)
	}
}

func TestNothingIsTakenOffTheListOfACephClusterThatCameInBetween(t *testing.T) {
	s, client := newServer(t, map[string]string{clusterPath: clusterOf(`{"useAllNodes":false,"nodes":[` + w1 + "," + w2 + `]}`)})
	node, err := client.StorageNode(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	s.before = func(objects map[string]string) {
		objects[clusterPath] = strings.Replace(objects[clusterPath], `"uid":"`+node.ClusterUID+`"`, `"uid":"another"`, 1)
		s.before = nil
	}
	if _, err := client.RemoveStorageNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if got := s.object(clusterPath); !strings.Contains(got, `"another"`) || !strings.Contains(got, w1) {
		t.Errorf("the other CephCluster is %s", got)
	}
}
