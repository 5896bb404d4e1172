package rook

import (
	"errors"
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec/podexectest"
)

func TestAClientThatOnlyReadsChangesNoObjectOfRook(t *testing.T) {
	s, _ := newServer(t, map[string]string{
		onePath:     osdOf("rook-ceph-osd-3", "u3", "3", "w1"),
		clusterPath: versioned(`{"useAllNodes":false,"nodes":[`+w1+","+w2+`]}`, "7"),
	})
	client := s.bound(readOnly, kube.Options{})
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

// A client of ceph that was not told that nothing may change asks and changes
// nothing, because the terms are those of the API through which it runs.
func TestInADryRunCephIsAskedAndNotChangedWhoeverForgot(t *testing.T) {
	s, _ := newServer(t, map[string]string{
		clusterPath: emptyCluster, deploymentPath + "/rook-ceph-operator": operatorOf("rook/ceph:v1.10.8"),
		podPath + "?app=rook-ceph-tools": `{"items":[` + podOf("tools", "2026-01-01T00:00:00Z", "Running", "True", "") + `]}`,
	})
	s.exec = podexectest.OverWebSocket(t, func(argv []string) (string, string, int) {
		if argv[0] == "env" && argv[len(argv)-1] == "json" {
			return "", "", 0 // it would read questions, which package ceph answers for
		}
		if !slices.Contains(argv, "version") {
			t.Errorf("%q was run", argv)
		}
		return `{"version":"ceph version 16.2.10 (0) pacific (stable)"}`, "", 0
	})
	client := ceph.New(NewRunner(s.bound(readOnly, kube.Options{})), ceph.Options{})
	if _, err := client.Version(t.Context()); err != nil {
		t.Errorf("a question: %v", err)
	}
	if err := client.Out(t.Context(), 1); !errors.Is(err, kube.ErrReadOnly) {
		t.Errorf("a change: %v", err)
	}
}

var readOnly = kube.Terms{ReadOnly: true}
