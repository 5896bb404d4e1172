package rook

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/podexec/podexectest"
)

// The Runner is what runs ceph in the pod.
var (
	_ ceph.Runner            = Runner{}
	_ ceph.InteractiveRunner = Runner{}
)

func TestCephIsUnavailableWithoutAToolsPodAndAnswersWithOne(t *testing.T) {
	s, client := newServer(t, map[string]string{
		clusterPath: emptyCluster, deploymentPath + "/rook-ceph-operator": operatorOf("rook/ceph:v1.10.8"),
		podPath + "?app=rook-ceph-tools": `{"items":[]}`,
	})
	s.exec = podexectest.OverWebSocket(t, func([]string) (string, string, int) {
		return "", "Error ENOTEMPTY: (39) Directory not empty", 39
	})
	api := ceph.New(NewRunner(client), ceph.Options{})
	err := api.CrushRemove(t.Context(), "w1")
	if !errors.Is(err, ceph.ErrUnavailable) || !errors.Is(err, ErrNoToolsPod) {
		t.Errorf("without a pod: %v", err)
	}
	s.mu.Lock()
	s.objects[podPath+"?app=rook-ceph-tools"] = `{"items":[` + podOf("tools", "2026-01-01T00:00:00Z", "Running", "True", "") + `]}`
	s.mu.Unlock()
	if err := api.CrushRemove(t.Context(), "w1"); !errors.Is(err, ceph.ErrHostNotEmpty) {
		t.Errorf("with a pod: %v", err)
	}
}

func TestTheRunnerTalksInThePodThatItNamesNow(t *testing.T) {
	at := podPath + "?app=rook-ceph-tools"
	s, client := newServer(t, map[string]string{
		clusterPath: emptyCluster, deploymentPath + "/rook-ceph-operator": operatorOf("rook/ceph:v1.10.8"), at: `{"items":[]}`,
	})
	runner := NewRunner(client)
	if _, err := runner.Place(t.Context()); !errors.Is(err, ErrNoToolsPod) {
		t.Errorf("without a pod: %v", err)
	}
	for _, name := range []string{"tools-1", "tools-2"} {
		s.mu.Lock()
		s.objects[at] = `{"items":[` + podOf(name, "2026-01-01T00:00:00Z", "Running", "True", "") + `]}`
		s.mu.Unlock()
		place, err := runner.Place(t.Context())
		if err != nil || place != name+"/rook-ceph-tools" {
			t.Errorf("it is %q, %v", place, err)
		}
		var path string
		served := podexectest.ShoutsOverWebSocket(t)
		s.exec = func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; served(w, r) }
		out := podexectest.NewHeard()
		if code, err := runner.Interact(t.Context(), place, []string{"ceph"}, strings.NewReader("x"), out, io.Discard); code != 3 || err != nil {
			t.Errorf("%d, %v", code, err)
		}
		if out.Await(t, "X"); path != podPath+"/"+name+"/exec" {
			t.Errorf("it talked with %s", path)
		}
	}
	if _, err := runner.Interact(t.Context(), "nowhere", []string{"ceph"}, strings.NewReader(""), io.Discard, io.Discard); err == nil {
		t.Error("it talked with nowhere")
	}
}
