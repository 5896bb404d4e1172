package kubesim_test

import (
	"errors"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
)

func TestTheSimulatedClusterStatusIsWrittenOnlyOverTheVersionThatWasRead(t *testing.T) {
	c := kubesim.New()
	if _, err := c.KubeadmConfig(t.Context()); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("error is %v", err)
	}
	c.SetKubeadmConfig("old")
	read, err := c.KubeadmConfig(t.Context())
	if err != nil || read.ClusterStatus != "old" {
		t.Fatalf("read %+v, %v", read, err)
	}
	version, err := c.WriteClusterStatus(t.Context(), "new", read.Version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WriteClusterStatus(t.Context(), "late", read.Version); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("error is %v", err)
	}
	if got, _ := c.KubeadmConfig(t.Context()); got != (kube.KubeadmConfig{ClusterStatus: "new", Version: version}) {
		t.Errorf("read %+v", got)
	}
	if got := c.Count(kubesim.WriteClusterStatusEffect); got != 2 {
		t.Errorf("%d effects", got)
	}
	c.SetKubeadmConfig122()
	read, err = c.KubeadmConfig(t.Context())
	if err != nil || read.ClusterStatus != "" {
		t.Errorf("read %+v, %v", read, err)
	}
	if _, err := c.WriteClusterStatus(t.Context(), "new", read.Version); err == nil {
		t.Error("a ClusterStatus was created")
	}
}

func TestSimulatedAPIServersAreSortedAndCanBeForbidden(t *testing.T) {
	c := kubesim.New()
	c.AddAPIServer("b", "")
	c.AddAPIServer("a", "10.0.0.1:6443")
	pods, err := c.APIServerPods(t.Context())
	if err != nil || len(pods) != 2 || pods[0] != (kube.APIServerPod{Name: "kube-apiserver-a", Node: "a", AdvertiseEndpoint: "10.0.0.1:6443"}) {
		t.Errorf("pods %+v, %v", pods, err)
	}
	c.Forbid(kubesim.ListPods)
	if _, err := c.APIServerPods(t.Context()); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("error is %v", err)
	}
}
