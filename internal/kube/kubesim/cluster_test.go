package kubesim_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func want(t *testing.T, err, sentinel error) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("got %v, want %v", err, sentinel)
	}
}

func TestANodeIsLostReturnedReplacedAndRemoved(t *testing.T) {
	c := kubesim.New()
	added := c.AddNode("w1", journal.RoleWorker)
	unreachable := func() bool {
		node, err := c.Node(t.Context(), "w1")
		want(t, err, nil)
		since, is := node.Facts.Unreachable()
		return is && !since.IsZero()
	}
	c.LoseNode("w1")
	if !unreachable() {
		t.Error("a lost node is not unreachable")
	}
	c.ReturnNode("w1")
	if unreachable() {
		t.Error("a returned node is unreachable")
	}
	if replaced := c.ReplaceNode("w1"); replaced.UID == added.UID || replaced.Facts.Role != journal.RoleWorker {
		t.Errorf("replaced %+v by %+v", added, replaced)
	}
	want(t, c.DeleteNode(t.Context(), "w1", added.UID), kube.ErrOtherUID)
	c.RemoveNode("w1")
	_, err := c.Node(t.Context(), "w1")
	want(t, err, kube.ErrNotFound)
	want(t, c.DeleteNode(t.Context(), "w1", added.UID), kube.ErrNotFound)
}

func TestPodsTerminateAndAreDeletedByUID(t *testing.T) {
	c := kubesim.New()
	pod, deletion := c.AddPod("default", "web-0", "w1"), time.Unix(100, 0).UTC()
	c.AddPod("default", "web-1", "w2")
	refs := c.TerminatePods("w1", deletion)
	if len(refs) != 1 || refs[0].UID != pod.UID || !refs[0].DeletionTimestamp.Equal(deletion) {
		t.Errorf("terminating are %+v", refs)
	}
	want(t, c.ForceDeletePod(t.Context(), "default", "web-0", "another"), kube.ErrOtherUID)
	c.Stick("default", "web-0", true)
	want(t, c.ForceDeletePod(t.Context(), "default", "web-0", pod.UID), nil)
	_, err := c.Pod(t.Context(), "default", "web-0")
	want(t, err, nil)
	c.Stick("default", "web-0", false)
	want(t, c.ForceDeletePod(t.Context(), "default", "web-0", pod.UID), nil)
	_, err = c.Pod(t.Context(), "default", "web-0")
	want(t, err, kube.ErrNotFound)
	var changed []bool
	for _, effect := range c.Effects() {
		changed = append(changed, effect.Changed)
	}
	if !slices.Equal(changed, []bool{false, false, true}) || c.Count("delete-pod default/web-0") != 3 {
		t.Errorf("effects %+v", c.Effects())
	}
}

func TestFaultsAreWhatTheyAreCalled(t *testing.T) {
	c := kubesim.New()
	node := c.AddNode("w1", journal.RoleWorker)
	c.Forbid(kubesim.DeleteNodes)
	want(t, c.DeleteNode(t.Context(), "w1", node.UID), kube.ErrForbidden)
	c.Allow(kubesim.DeleteNodes)
	c.Outage(true)
	want(t, c.DeleteNode(t.Context(), "w1", node.UID), kube.ErrUnavailable)
	_, err := c.ClusterUID(t.Context())
	want(t, err, kube.ErrUnavailable)
	c.Outage(false)
	if len(c.Effects()) != 0 {
		t.Errorf("calls that did not get through had the effects %+v", c.Effects())
	}
	c.LoseAnswer("delete-node w1")
	want(t, c.DeleteNode(t.Context(), "w1", node.UID), kube.ErrUnavailable)
	want(t, c.DeleteNode(t.Context(), "w1", node.UID), kube.ErrNotFound)
	uid, err := c.ClusterUID(t.Context())
	if want(t, err, nil); uid != kubesim.ClusterUID {
		t.Errorf("the cluster is %q", uid)
	}
}

func TestHooksSurroundEffects(t *testing.T) {
	c := kubesim.New()
	node := c.AddNode("w1", journal.RoleWorker)
	var seen []string
	look := func(when string) func(string) {
		return func(effect string) {
			nodes, _, _ := c.Snapshot()
			seen = append(seen, when+" "+effect+map[bool]string{true: " there", false: " gone"}[len(nodes) == 1])
		}
	}
	c.BeforeEffect, c.AfterEffect = look("before"), look("after")
	want(t, c.DeleteNode(t.Context(), "w1", node.UID), nil)
	if !slices.Equal(seen, []string{"before delete-node w1 there", "after delete-node w1 gone"}) {
		t.Errorf("saw %q", seen)
	}
}

func TestTheMirrorIsReplacedByVersion(t *testing.T) {
	c := kubesim.New()
	_, _, err := c.ReadMirror(t.Context())
	want(t, err, kube.ErrNotFound)
	first, err := c.WriteMirror(t.Context(), []byte("a"), "")
	want(t, err, nil)
	_, err = c.WriteMirror(t.Context(), []byte("b"), "")
	want(t, err, kube.ErrConflict)
	second, err := c.WriteMirror(t.Context(), []byte("b"), first)
	want(t, err, nil)
	_, err = c.WriteMirror(t.Context(), []byte("c"), first)
	want(t, err, kube.ErrConflict)
	content, version, err := c.ReadMirror(t.Context())
	if want(t, err, nil); string(content) != "b" || version != second || first == second {
		t.Errorf("read %q of version %q", content, version)
	}
}

func TestLatencyIsSpentAndEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := kubesim.New()
		c.SetLatency(time.Second)
		begin := time.Now()
		_, err := c.ClusterUID(t.Context())
		if want(t, err, nil); time.Since(begin) != time.Second {
			t.Errorf("took %s", time.Since(begin))
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		_, err = c.ClusterUID(ctx)
		want(t, err, context.DeadlineExceeded)
	})
}

func TestChangesAreAnnounced(t *testing.T) {
	c := kubesim.New()
	_, _, changed := c.Snapshot()
	select {
	case <-changed:
		t.Error("announced a change too early")
	default:
	}
	c.AddNode("w1", journal.RoleWorker)
	select {
	case <-changed:
	default:
		t.Fatal("announced no change")
	}
	want(t, c.RecordEvent(t.Context(), journal.NodeSubject("w1", ""), kube.Note{Reason: "X"}), nil)
	if events := c.Events(); len(events) != 1 || events[0].Note.Reason != "X" {
		t.Errorf("events %+v", events)
	}
}
