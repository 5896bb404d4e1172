package ceph

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// inPods hands commands on as the tools pod gets them, where nothing may change.
type inPods struct {
	*script
	client *http.Client
}

func (p *inPods) Run(ctx context.Context, argv []string) ([]byte, []byte, int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api/api/v1/namespaces/rook-ceph/pods/tools/exec", nil)
	if err != nil {
		return nil, nil, 0, err
	}
	if _, err := p.client.Do(request); err != nil { //nolint:bodyclose // there is none
		return nil, nil, 0, err
	}
	return p.script.Run(ctx, argv)
}

func TestWhatAsksCephIsAQuestionAndWhatChangesItIsNone(t *testing.T) {
	config := &rest.Config{Host: "https://api", Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})}
	kube.Terms{ReadOnly: true}.Bind(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, answers: map[string]answer{
		"osd tree": {stdout: string(recorded(t, "osd-tree-ok"))}, "osd dump": {stdout: string(recorded(t, "osd-dump"))},
	}}
	asked := New(&inPods{s, client}, Options{}) // it does not know by itself that nothing may change
	if _, err := asked.Tree(t.Context()); err != nil {
		t.Errorf("a question is refused: %v", err)
	}
	if err := asked.Out(t.Context(), 1); !errors.Is(err, kube.ErrReadOnly) {
		t.Errorf("a change: %v, want ErrReadOnly", err)
	}
}
