package rook

import (
	"errors"
	"net/http"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
)

func TestAClientThatOnlyReadsChangesNoObjectOfRook(t *testing.T) {
	s, _ := newServer(t, map[string]string{
		onePath:     osdOf("rook-ceph-osd-3", "u3", "3", "w1"),
		clusterPath: clusterOf(`{"useAllNodes":false,"nodes":[` + w1 + "," + w2 + `]}`),
	})
	client := s.client(Options{ReadOnly: true})
	node, err := client.StorageNode(t.Context(), "w1")
	if err != nil || node.Name != "w1" {
		t.Fatalf("read %+v, %v", node, err)
	}
	for name, change := range map[string]func() error{
		"ScaleDown":        func() error { return client.ScaleDown(t.Context(), "rook-ceph-osd-3", "u3") },
		"DeleteDeployment": func() error { return client.DeleteDeployment(t.Context(), "rook-ceph-osd-3", "u3") },
		"AddStorageNode": func() error {
			return client.AddStorageNode(t.Context(), StorageNode{ClusterUID: node.ClusterUID, Name: "w9", Entry: []byte(`{"name":"w9"}`)})
		},
		"RemoveStorageNode": func() error { _, err := client.RemoveStorageNode(t.Context(), node); return err },
	} {
		if err := change(); !errors.Is(err, kube.ErrReadOnly) || errors.Is(err, kube.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrReadOnly alone", name, err)
		}
	}
	if len(s.writes()) != 0 {
		t.Errorf("writes %q", s.writes())
	}
}

func TestAClientThatOnlyReadsRunsProgramsOverEitherProtocol(t *testing.T) {
	run := func([]string) (string, string, int) { return "out", "", 0 }
	for name, exec := range map[string]http.HandlerFunc{
		"WebSocket": overWebSocket(t, run), "SPDY": byMethod(forbidden, overSPDY(t, run)),
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t, nil)
			s.exec = exec
			stdout, _, _, err := s.client(Options{ReadOnly: true}).Exec(t.Context(), toolsPod, []string{"ceph", "status"})
			if err != nil || string(stdout) != "out" {
				t.Errorf("%q, %v", stdout, err)
			}
		})
	}
}

func TestOfWhatIsPostedOnlyAnExecIntoAPodRunsAProgram(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/namespaces/rook-ceph/pods/tools/exec":              true,
		"/api/v1/namespaces/rook-ceph/pods":                         false,
		"/api/v1/namespaces/rook-ceph/pods/tools/eviction":          false,
		"/apis/apps/v1/namespaces/rook-ceph/deployments/tools/exec": false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := isExec(request); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
