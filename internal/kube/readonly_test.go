package kube

import (
	"context"
	"errors"
	"net/http"
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
	c := s.bound(Terms{ReadOnly: true}, Options{})
	if _, err := c.Node(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"DeleteNode":         func() error { return c.DeleteNode(t.Context(), "a", "u") },
		"ForceDeletePod":     func() error { return c.ForceDeletePod(t.Context(), "x", "p", "u") },
		"WriteMirror":        func() error { _, err := c.WriteMirror(t.Context(), nil, ""); return err },
		"WriteMirror anew":   func() error { _, err := c.WriteMirror(t.Context(), nil, "7"); return err },
		"WriteMirrorPart":    func() error { return c.WriteMirrorPart(t.Context(), "p", nil) },
		"DeleteMirrorPart":   func() error { return c.DeleteMirrorPart(t.Context(), "p") },
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

func TestOnlyWhatIsKnownToReadPassesATransportThatOnlyReads(t *testing.T) {
	const pod, node = "/api/v1/namespaces/x/pods/p", "/api/v1/nodes/n"
	for _, test := range []struct {
		method, path string
		// reads is what passes, asks what does for a question.
		reads, asks bool
	}{
		{"GET", "/readyz", true, true},
		{"GET", pod, true, true},
		{"HEAD", pod, true, true},
		{"GET", "/api/v1/namespaces/x/pods/p/log", true, true},
		{"GET", "/api/v1/namespaces/x/configmaps/exec", true, true},
		{"GET", "/apis/apps/v1/namespaces/x/deployments/d/scale", true, true},
		{"POST", "/api/v1/namespaces/x/pods", false, false},
		{"PUT", pod, false, false},
		{"PUT", pod + "/status", false, false},
		{"PATCH", node, false, false},
		{"DELETE", node, false, false},
		{"DELETE", "/api/v1/namespaces/x/pods", false, false},
		{"POST", pod + "/eviction", false, false},
		{"POST", pod + "/binding", false, false},
		{"POST", "/api/v1/namespaces/x/serviceaccounts/s/token", false, false},
		{"PATCH", "/apis/ceph.rook.io/v1/namespaces/x/cephclusters/c", false, false},
		{"POST", "/apis/apps/v1/namespaces/x/deployments/p/exec", false, false},
		{"POST", pod + "/exec", false, true},
		{"GET", pod + "/exec", false, true},
		{"GET", "/k8s/clusters/c-1" + pod + "/exec", false, true},
		{"GET", pod + "/attach", false, true},
		{"GET", pod + "/portforward", false, true},
		{"GET", pod + "/proxy/delete-all", false, true},
		{"GET", "/api/v1/namespaces/x/services/s/proxy", false, true},
		{"GET", node + "/proxy/run/x/p/c", false, true},
	} {
		for name, ctx := range map[string]context.Context{"request": t.Context(), "question": ReadsOnly(t.Context())} {
			sent := false
			transport := &readOnly{next: roundTrip(func(*http.Request) (*http.Response, error) { sent = true; return &http.Response{}, nil })}
			request, err := http.NewRequestWithContext(ctx, test.method, "https://api"+test.path, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = transport.RoundTrip(request) //nolint:bodyclose // it has none
			if want := map[string]bool{"request": test.reads, "question": test.asks}[name]; sent != want || errors.Is(err, ErrReadOnly) == want {
				t.Errorf("%s %s as a %s: sent is %v, want %v, with error %v", test.method, test.path, name, sent, want, err)
			}
		}
	}
}

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
