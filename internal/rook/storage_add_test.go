package rook

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
)

func versioned(storage, version string) string {
	return strings.Replace(clusterOf(storage), `"uid":"c1"`, `"uid":"c1","resourceVersion":"`+version+`"`, 1)
}

var capturedW2 = StorageNode{ClusterUID: "c1", Name: "w2", Entry: []byte(w2)}

func TestAStorageNodeIsPutBackOnTheListOnce(t *testing.T) {
	for name, nodes := range map[string]string{"others are listed": "[" + w1 + "," + w3, "the list is empty": "[", "there is no list": ""} {
		t.Run(name, func(t *testing.T) {
			before, after := nodes+"]", nodes+","+w2+"]"
			switch nodes {
			case "[":
				after = "[" + w2 + "]"
			case "":
				before, after = "null", "["+w2+"]"
			}
			s, client := newServer(t, map[string]string{clusterPath: versioned(`{"useAllNodes":false,"nodes":`+before+`}`, "7")})
			for range 2 {
				if err := client.AddStorageNode(t.Context(), capturedW2); err != nil {
					t.Fatal(err)
				}
			}
			want := versioned(`{"useAllNodes":false,"nodes":`+after+`}`, "7")
			if diff := cmp.Diff(canonical(t, want), canonical(t, s.object(clusterPath))); diff != "" {
				t.Errorf("written (- wanted, + got):\n%s", diff)
			}
			if len(s.writes()) != 1 {
				t.Errorf("writes %q", s.writes())
			}
		})
	}
}

func TestNothingIsPutOnAListThatIsNotInUseOrNotTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		cluster string
		node    StorageNode
	}{
		"all nodes are used":      {versioned(`{"useAllNodes":true,"nodes":[]}`, "7"), capturedW2},
		"it is listed, otherwise": {versioned(`{"nodes":[{"name":"w2"}]}`, "7"), capturedW2},
		"another CephCluster":     {strings.Replace(versioned(`{"nodes":[]}`, "7"), "c1", "c2", 1), capturedW2},
		"nothing was captured":    {versioned(`{"nodes":[]}`, "7"), StorageNode{ClusterUID: "c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t, map[string]string{clusterPath: test.cluster})
			if err := client.AddStorageNode(t.Context(), test.node); err != nil {
				t.Error(err)
			}
			if writes := s.writes(); len(writes) != 0 {
				t.Errorf("writes %q", writes)
			}
		})
	}
	_, client := newServer(t, nil)
	if err := client.AddStorageNode(t.Context(), capturedW2); err != nil {
		t.Errorf("without a CephCluster: %v", err)
	}
}

func TestAListThatMovesWhileANodeIsPutBackIsReadAgain(t *testing.T) {
	s, client := newServer(t, map[string]string{clusterPath: versioned(`{"nodes":[`+w1+`]}`, "7")})
	s.before = func(objects map[string]string) {
		objects[clusterPath] = versioned(`{"nodes":[`+w1+`,{"name":"w2"}]}`, "8")
		s.before = nil
	}
	if err := client.AddStorageNode(t.Context(), capturedW2); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(s.object(clusterPath), `"w2"`); got != 1 {
		t.Errorf("it is listed %d times:\n%s", got, s.object(clusterPath))
	}
	s.failures["PATCH "+clusterPath] = 422
	if err := client.AddStorageNode(t.Context(), StorageNode{ClusterUID: "c1", Name: "w3", Entry: []byte(w3)}); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("a list that moves for ever: %v", err)
	}
}

func TestThePodsOfOSDsOnANodeAreThoseThatHaveNotEnded(t *testing.T) {
	pod := func(name, node, id, phase string) string {
		return `{"metadata":{"name":"` + name + `","labels":{"ceph-osd-id":"` + id + `"}},"spec":{"nodeName":"` + node + `"},"status":{"phase":"` + phase + `"}}`
	}
	_, client := newServer(t, map[string]string{podPath + "?app=rook-ceph-osd": `{"items":[` + strings.Join([]string{
		pod("osd-12-b", "w1", "12", "Running"), pod("osd-3-a", "w1", "3", "Pending"), pod("osd-4-a", "w2", "4", "Running"),
		pod("osd-5-a", "w1", "5", "Succeeded"), pod("osd-6-a", "w1", "6", "Failed"), pod("odd", "w1", "", "Unknown"),
	}, ",") + `]}`})
	got, err := client.OSDPods(t.Context(), "w1")
	want := []OSDPod{{Name: "odd", OSD: UnknownOSD}, {Name: "osd-12-b", OSD: 12}, {Name: "osd-3-a", OSD: 3}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (- wanted, + got):\n%s", err, diff)
	}
}
