package rooksim_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/internal/rook/rooksim"
)

func TestTheOSDsOfAMachineGoOnceAndItsEntryToo(t *testing.T) {
	r, ctx := rooksim.New(), t.Context()
	nine, ten := r.AddOSD(9, "w1"), r.AddOSD(10, "w1")
	other := r.AddOSD(3, "w2")
	r.ListNode("w1")
	r.ListNode("w2")
	found, err := r.OSDDeployments(ctx)
	if diff := cmp.Diff([]rook.OSDDeployment{ten, other, nine}, found); err != nil || diff != "" {
		t.Errorf("found %v (- wanted, + got):\n%s", err, diff)
	}
	node, err := r.StorageNode(ctx, "w1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ScaleDown(ctx, nine.Name, nine.UID); err != nil {
		t.Error(err)
	}
	if err := r.DeleteDeployment(ctx, nine.Name, "other"); !errors.Is(err, kube.ErrOtherUID) {
		t.Errorf("another UID: %v", err)
	}
	if err := r.DeleteDeployment(ctx, nine.Name, nine.UID); err != nil {
		t.Error(err)
	}
	if err := r.DeleteDeployment(ctx, nine.Name, nine.UID); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
	for _, want := range []string{`{"name":"w1"}`, ""} {
		if removed, err := r.RemoveStorageNode(ctx, node); err != nil || string(removed) != want {
			t.Errorf("removed %q, %v", removed, err)
		}
	}
	if !slices.Equal(r.Nodes(), []string{"w2"}) || r.Count("remove-storage-node w1") != 2 {
		t.Errorf("nodes %q, effects %v", r.Nodes(), r.Effects())
	}
}

func TestTheListIsLeftAloneWhenItIsNotInUseOrNotTheSame(t *testing.T) {
	for name, change := range map[string]func(*rooksim.Rook){
		"all nodes":           func(r *rooksim.Rook) { r.UseAllNodes(true) },
		"another CephCluster": func(r *rooksim.Rook) { r.ReplaceCluster("other") },
	} {
		r := rooksim.New()
		r.ListNode("w1")
		node, err := r.StorageNode(t.Context(), "w1")
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		if removed, err := r.RemoveStorageNode(t.Context(), node); err != nil || removed != nil || len(r.Nodes()) != 1 {
			t.Errorf("%s: removed %s, %v", name, removed, err)
		}
	}
}

func TestFaultsLookLikeThoseOfTheRealThing(t *testing.T) {
	r, ctx := rooksim.New(), t.Context()
	osd := r.AddOSD(9, "w1")
	r.LoseAnswer("delete-deployment " + osd.Name)
	if err := r.DeleteDeployment(ctx, osd.Name, osd.UID); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("a lost answer: %v", err)
	}
	if found, _ := r.OSDDeployments(ctx); len(found) != 0 {
		t.Error("it did not happen")
	}
	r.LoseToolsPod(true)
	if _, err := r.ToolsPod(ctx, rook.Version{}); !errors.Is(err, rook.ErrNoToolsPod) {
		t.Errorf("no tools pod: %v", err)
	}
	r.Forbid(rooksim.GetCephClusters)
	if found, err := r.Detect(ctx); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("forbidden: %+v, %v", found, err)
	}
	r.Outage(true)
	if _, err := r.Detect(ctx); !errors.Is(err, kube.ErrUnavailable) {
		t.Errorf("an outage: %v", err)
	}
}

func TestThePodAnswersWhatTheTestSays(t *testing.T) {
	r := rooksim.New()
	r.OnExec = func(_ context.Context, pod rook.Pod, argv []string) ([]byte, []byte, int, error) {
		return []byte(pod.Container + " " + argv[0]), nil, 39, nil
	}
	runner := rook.NewRunner(r)
	stdout, _, exitCode, err := runner.Run(t.Context(), []string{"ceph"})
	if string(stdout) != "rook-ceph-tools ceph" || exitCode != 39 || err != nil {
		t.Errorf("%q, %d, %v", stdout, exitCode, err)
	}
	r.SetInstallation(rook.Installation{Why: "gone"})
	runner = rook.NewRunner(r) // the other one remembers
	if _, _, _, err := runner.Run(t.Context(), []string{"ceph"}); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("without Rook: %v", err)
	}
}
