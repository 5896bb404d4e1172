package kotsadm

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// client reads and scales.
type client struct{ objects *kubesim.Objects }

func (c client) Read(ctx context.Context) (journal.KotsadmFacts, error) {
	return Object(c.objects).Read(ctx, journal.KotsadmDatabase)
}

func (c client) Scale(ctx context.Context, uid string) (journal.KotsadmFacts, error) {
	return scale(ctx, c.objects, uid)
}

func (c client) Unready(ctx context.Context, withPods bool) (journal.KotsadmFacts, string, error) {
	return unreadyReason(ctx, c.objects, withPods)
}

func withObject(object string) (client, *kubesim.Objects, string) {
	objects := kubesim.NewObjects()
	uid := objects.Put(Ref, object)
	return client{objects}, objects, uid
}

func withArgs(args string) string {
	return `{"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"rqlite","image":"rqlite:8","args":` + args + `},{"args":["-bootstrap-expect=1"]}]}}}}`
}

func TestOnlyTheReplicasAndTheMembersOfTheFirstContainerAreChanged(t *testing.T) {
	before, err := os.ReadFile("testdata/kotsadm-rqlite.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := withReplicas(before, 3)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"replicas": 1,`, `"replicas": 3,`, `"-bootstrap-expect=1"`, `"-bootstrap-expect=3"`).Replace(string(before))
	if diff := cmp.Diff(canonical(t, []byte(want)), canonical(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(string(got), "12345678901234567890.50") || !strings.Contains(string(got), "a<b>&c") {
		t.Errorf("a value is written in another way: %s", got)
	}
}

// canonical orders members, and leaves values as they are written.
func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var object any
	if err := decoder.Decode(&object); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheArgumentIsFoundAndNoOtherIsTaken(t *testing.T) {
	for args, want := range map[string]struct{ expect, after string }{
		`["-a","-bootstrap-expect=1","-b"]`:                  {"1", `["-a","-bootstrap-expect=3","-b"]`},
		`["-bootstrap-expect","1"]`:                          {"1", `["-bootstrap-expect","3"]`},
		`["-bootstrap-expect-timeout=2m","-disco-mode=dns"]`: {"", `["-bootstrap-expect-timeout=2m","-disco-mode=dns"]`},
		`["-bootstrap-expect"]`:                              {"", `["-bootstrap-expect"]`},
		`[]`:                                                 {"", `[]`},
	} {
		client, objects, uid := withObject(withArgs(args))
		before, err := client.Read(t.Context())
		if err != nil || before.Expect != want.expect || before.Image != "rqlite:8" {
			t.Errorf("%s: %v: read %+v", args, err, before)
		}
		after, err := client.Scale(t.Context(), uid)
		if err != nil || !after.Scaled() || after.Generation != 2 {
			t.Errorf("%s: %v: scaled to %+v", args, err, after)
		}
		raw, err := objects.ReadObject(t.Context(), Ref)
		if err != nil || !strings.Contains(string(raw), `"args":`+want.after) || !strings.Contains(string(raw), `{"args":["-bootstrap-expect=1"]}`) {
			t.Errorf("%s: %v: it is %s", args, err, raw)
		}
		if _, err := client.Scale(t.Context(), uid); err != nil || objects.Calls("update statefulsets") != 1 {
			t.Errorf("%s: done again: %v", args, err)
		}
	}
}

func TestAnotherWhoWasFasterIsNotOverwritten(t *testing.T) {
	client, objects, uid := withObject(withArgs(`["-bootstrap-expect=1"]`))
	others := 0
	objects.BeforeEffect = func(string) {
		if others++; others < 3 {
			objects.Edit(Ref, func(object map[string]any) { object["spec"].(map[string]any)["replicas"] = 5 + others })
		}
	}
	if set, err := client.Scale(t.Context(), uid); err != nil || !set.Scaled() || objects.Calls("update statefulsets") != 3 {
		t.Errorf("%v: set %+v with %d updates", err, set, objects.Calls("update statefulsets"))
	}
	objects.Remove(Ref)
	if _, err := client.Scale(t.Context(), uid); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	objects.Put(Ref, withArgs(`[]`))
	if _, err := client.Scale(t.Context(), uid); !errors.Is(err, kube.ErrOtherUID) {
		t.Errorf("another: %v", err)
	}
}

func TestAWebhookThatMakesAnotherNumberIsAnError(t *testing.T) {
	client, objects, uid := withObject(withArgs(`[]`))
	objects.OnWrite = func(_ kube.Ref, object map[string]any) { object["spec"].(map[string]any)["replicas"] = 1 }
	if _, err := client.Scale(t.Context(), uid); err == nil || !strings.Contains(err.Error(), "webhook") {
		t.Errorf("got %v", err)
	}
}

func TestWhatTheReplicasLackIsSaidWithThePodsReasons(t *testing.T) {
	client, objects, _ := withObject(`{"spec":{"replicas":3},"status":{"observedGeneration":1,"replicas":3,"readyReplicas":1,"updatedReplicas":3}}`)
	objects.Put(PodRef(0), `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	objects.Put(PodRef(1), `{"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/2 nodes are available"}]}}`)
	lacks := func(withPods bool, want string) {
		t.Helper()
		if _, got, err := client.Unready(t.Context(), withPods); err != nil || got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
	const one = "1 of 3 replicas are ready"
	lacks(false, one)
	lacks(true, one+"; kotsadm-rqlite-1: Pending: Unschedulable: 0/2 nodes are available; kotsadm-rqlite-2: does not exist")
	for content, want := range map[string]string{
		`{"spec":{"nodeName":"a"},"status":{"phase":"Running","containerStatuses":[{"name":"rqlite","restartCount":7,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 5m0s"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}`: "Running: container rqlite: CrashLoopBackOff (last ended with exit code 1, Error) on node a",
		`{"spec":{"nodeName":"a"},"status":{"phase":"Pending","initContainerStatuses":[{"name":"init","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}`:                                                                                                     "Pending: container init: ImagePullBackOff on node a",
		`{"spec":{"nodeName":"a"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}`:                                                                                                                                                "Running, not ready on node a",
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"a"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`:                                                                                         "Terminating on node a",
		`{}`: "Unknown",
	} {
		objects.Put(PodRef(1), content)
		objects.Put(PodRef(2), `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		lacks(true, one+"; kotsadm-rqlite-1: "+want)
	}
	objects.Forbid("get pods")
	if _, got, err := client.Unready(t.Context(), true); err != nil || !strings.Contains(got, "kotsadm-rqlite-1: get pods: forbidden") {
		t.Errorf("%v: %s", err, got)
	}
}

// TestReplicasOfAFormerRevisionAreNotThoseThatWereAskedFor: a change of the argument makes
// a new revision, and all replicas are ready before the first of it has begun.
func TestReplicasOfAFormerRevisionAreNotThoseThatWereAskedFor(t *testing.T) {
	client, objects, _ := withObject(`{"spec":{"replicas":3}}`)
	pod := func(i int, revision string) {
		objects.Put(PodRef(i), `{"metadata":{"labels":{"controller-revision-hash":"kotsadm-rqlite-`+revision+`"}},"spec":{"nodeName":"a"},
			"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	}
	pod(1, "new")
	pod(2, "new")
	for _, test := range []struct {
		observed, replicas, ready, updated int
		want                               string
	}{
		{1, 3, 3, 3, ""},
		{2, 3, 3, 3, ""},
		{0, 3, 3, 3, "the StatefulSet controller has not seen the change yet"},
		{1, 3, 3, 2, "2 of 3 replicas are of the new revision; kotsadm-rqlite-0: of revision kotsadm-rqlite-old, not kotsadm-rqlite-new, on node a"},
		{1, 3, 3, 0, "0 of 3 replicas are of the new revision; kotsadm-rqlite-0: of revision kotsadm-rqlite-old, not kotsadm-rqlite-new, on node a"},
		{1, 3, 2, 3, "2 of 3 replicas are ready"},
		{1, 3, 2, 2, "2 of 3 replicas are ready, 2 of the new revision; kotsadm-rqlite-0: of revision kotsadm-rqlite-old, not kotsadm-rqlite-new, on node a"},
		{1, 5, 5, 3, "there are 5 replicas, want 3"},
		{1, 4, 3, 3, "there are 4 replicas, want 3"},
	} {
		objects.Edit(Ref, func(object map[string]any) {
			object["status"] = map[string]any{
				"observedGeneration": test.observed, "replicas": test.replicas, "readyReplicas": test.ready,
				"updatedReplicas": test.updated, "updateRevision": "kotsadm-rqlite-new",
			}
		})
		pod(0, "new")
		if test.updated < 3 {
			pod(0, "old")
		}
		if _, got, err := client.Unready(t.Context(), true); err != nil || got != test.want {
			t.Errorf("%+v: %v: got %q", test, err, got)
		}
	}
}
