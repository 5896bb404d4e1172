package kube

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kubeadm"
	"github.com/replicatedhq/ekco/journal"
)

func TestAClientThatOnlyReadsSendsNothingThatChangesTheCluster(t *testing.T) {
	s := newServer(t, map[string]any{
		"GET /api/v1/nodes/a": lostNode(true),
		"GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config": &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Data: map[string]string{kubeadm.ClusterStatusKey: "old"},
		},
	})
	c := s.client(Options{ReadOnly: true})
	if _, err := c.Node(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"DeleteNode":         func() error { return c.DeleteNode(t.Context(), "a", "u") },
		"ForceDeletePod":     func() error { return c.ForceDeletePod(t.Context(), "x", "p", "u") },
		"WriteMirror":        func() error { _, err := c.WriteMirror(t.Context(), nil, ""); return err },
		"WriteMirror anew":   func() error { _, err := c.WriteMirror(t.Context(), nil, "7"); return err },
		"RecordEvent":        func() error { return c.RecordEvent(t.Context(), journal.NodeSubject("a", "u"), Note{}) },
		"WriteClusterStatus": func() error { _, err := c.WriteClusterStatus(t.Context(), "new", "7"); return err },
	} {
		if err := change(); !errors.Is(err, ErrReadOnly) || errors.Is(Sentinel(err), ErrUnavailable) {
			t.Errorf("%s: %v, want ErrReadOnly alone", name, err)
		}
	}
	for _, request := range s.requests {
		if !strings.HasPrefix(request.line, "GET ") {
			t.Errorf("sent %s", request.line)
		}
	}
}
