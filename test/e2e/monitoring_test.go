package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/actions/monitoring"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/kurl"
)

// applyMonitoring creates the CRDs, and Prometheus and Alertmanager as kURL does.
func (c *cluster) applyMonitoring() {
	c.t.Helper()
	for _, crd := range kurl.MonitoringCRDs(c.t, filepath.Join("..", "crds")) {
		c.kubectl("create", "-f", crd)
	}
	c.kubectl("wait", "--for=condition=Established", "crd/prometheuses.monitoring.coreos.com", "crd/alertmanagers.monitoring.coreos.com", "--timeout="+await.HangTimeout.String())
	c.kubectl("apply", "-f", filepath.Join("..", "kurl", "monitoring.yaml"))
}

// replicas returns those of Prometheus and of Alertmanager, as in "2 3".
func (c *cluster) replicas() string {
	c.t.Helper()
	read := func(object, name string) string {
		return c.kubectl("-n", "monitoring", "get", object, name, "-o", "jsonpath={.spec.replicas}")
	}
	return read("prometheuses", "k8s") + " " + read("alertmanagers", "prometheus-alertmanager")
}

func (c *cluster) waitReplicas(want string) {
	c.t.Helper()
	eventually(c.t, await.HangTimeout, "the replicas are "+want, func() (bool, string) {
		is := c.replicas()
		return is == want, is
	})
}

func TestReplicasOfMonitoringFollowTheNodesUnderTheShippedPermissions(t *testing.T) {
	t.Parallel()
	c, o := install(t, map[string]string{"reconcile_interval": "1h"})
	for _, name := range []string{"worker-1", "worker-2", "worker-3", "primary-3", "primary-2"} {
		c.kubectl("delete", "node", name)
	}
	c.applyMonitoring()
	o.startReady()
	c.waitReplicas("1 1")

	// Polls are an hour apart: what follows is from the nodes' own events.
	for _, step := range []struct{ join, leave, want string }{
		{join: "worker-11", want: "2 2"},
		{join: "worker-12", want: "2 3"},
		{join: "worker-13", want: "2 3"},
		{leave: "worker-13", want: "2 3"},
		{leave: "worker-12", want: "2 2"},
		{leave: "worker-11", want: "1 1"},
	} {
		if step.join != "" {
			c.node("add", step.join, "--role", "worker")
		} else {
			c.kubectl("delete", "node", step.leave)
		}
		c.waitReplicas(step.want)
	}
	eventually(t, await.HangTimeout, "both are in step", func() (bool, string) {
		status := o.mustEkco("status", "-o", "wide")
		return strings.Count(status, "InStep") == 2, status
	})
	if refusals := o.status().Refusals; len(refusals) > 0 {
		t.Errorf("refused are %+v", refusals)
	}
	c.checkConflicts()
}

// checkConflicts expects the API server to refuse what was made for an older object, in
// words that EKCO understands.
func (c *cluster) checkConflicts() {
	c.t.Helper()
	objects, err := kube.NewObjects(c.config, kube.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	ref := monitoring.Ref(journal.MonitoringPrometheus)
	old, err := objects.ReadObject(c.t.Context(), ref)
	if err != nil {
		c.t.Fatal(err)
	}
	test := []kube.PatchOp{{Op: "test", Path: "/spec/replicas", Value: 99}, {Op: "replace", Path: "/spec/replicas", Value: 98}}
	if _, err := objects.PatchObject(c.t.Context(), ref, test); !errors.Is(err, kube.ErrConflict) {
		c.t.Errorf("a patch whose test fails: %v", err)
	}
	c.kubectl("-n", "monitoring", "patch", "prometheuses", "k8s", "--type=merge", "-p", `{"spec":{"logLevel":"debug"}}`)
	if _, err := objects.ReplaceObject(c.t.Context(), ref, old); !errors.Is(err, kube.ErrConflict) {
		c.t.Errorf("an update of an older version: %v", err)
	}
}

func TestSomebodyWhoKeepsChangingReplicasBackIsNotFought(t *testing.T) {
	t.Parallel()
	c, o := install(t, nil)
	o.startReady()
	if absent := fmt.Sprint(o.status().Absent); strings.Contains(absent, "Prometheus") || strings.Contains(absent, "Alertmanager") {
		t.Errorf("where they are not installed the status does without %s", absent)
	}
	c.applyMonitoring() // appears while EKCO runs, with the right numbers
	undo := func() {
		c.kubectl("-n", "monitoring", "patch", "prometheuses", "k8s", "--type=merge", "-p", `{"spec":{"replicas":5}}`)
	}
	for range 2 {
		done := o.done(journal.ActionScaleMonitoring)
		undo()
		c.waitReplicas("2 3")
		eventually(t, await.HangTimeout, "the action that put them back has ended", func() (bool, string) {
			return o.done(journal.ActionScaleMonitoring) > done, ""
		})
	}
	undo()
	refusal := o.waitRefusal(journal.ActionScaleMonitoring, fsm.RuleContested)
	if !strings.Contains(refusal.Reason, "the replicas of Prometheus monitoring/k8s back to 5") {
		t.Errorf("the refusal says %q", refusal.Reason)
	}
	if is := c.replicas(); is != "5 3" {
		t.Errorf("the replicas are %s", is)
	}
	c.kubectl("delete", "crd", "prometheuses.monitoring.coreos.com")
	eventually(t, await.HangTimeout, "Prometheus is Removed, and Alertmanager is not", func() (bool, string) {
		status := o.mustEkco("status", "-o", "wide")
		return strings.Contains(status, "Removed") && strings.Contains(status, "InStep"), status
	})
}
