package minio_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
)

func installedBoth() (*miniosim.Both, *minio.Client) {
	objects := kubesim.NewObjects()
	b := miniosim.InstallBoth(objects, "a", "b", "c")
	return b, b.Client(objects)
}

var (
	singlePod = minio.SinglePodRef(miniosim.Namespace, "minio-5d9c-1")
	nodeA     = minio.NodeRef("a")
)

// under returns a part of an object.
func under(object map[string]any, part string) map[string]any { return object[part].(map[string]any) }

// condition is one of a node or pod.
func condition(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status}
}

func conditions(all ...any) func(map[string]any) {
	return func(object map[string]any) { under(object, "status")["conditions"] = all }
}

func TestThePodThatServesIsOneOfTheDeploymentThatIsReady(t *testing.T) {
	ended := func(phase string) func(b *miniosim.Both) {
		return func(b *miniosim.Both) {
			b.Edit(singlePod, func(o map[string]any) { under(o, "status")["phase"] = phase })
		}
	}
	for name, test := range map[string]struct {
		change func(b *miniosim.Both)
		lacks  string // "" if it serves
	}{
		"as it is": {func(*miniosim.Both) {}, ""},
		"it ends": {func(b *miniosim.Both) {
			b.Edit(singlePod, func(o map[string]any) { under(o, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
		}, "pod minio-5d9c-1 of standalone MinIO is not ready: Terminating on node a"},
		"it is not ready": {
			func(b *miniosim.Both) { b.Edit(singlePod, conditions(condition("Ready", "False"))) },
			"pod minio-5d9c-1 of standalone MinIO is not ready: Running, not ready on node a",
		},
		"its node does not say any more": {ended("Unknown"), "pod minio-5d9c-1 of standalone MinIO is not ready: Unknown on node a"},
		"it has no address": {func(b *miniosim.Both) {
			b.Edit(singlePod, func(o map[string]any) { delete(under(o, "status"), "podIP") })
		}, "pod minio-5d9c-1 of standalone MinIO is not ready: it has no address"},
		"it has failed":    {ended("Failed"), "Deployment minio has no pod"},
		"it has completed": {ended("Succeeded"), "Deployment minio has no pod"},
		"scaled to 0": {func(b *miniosim.Both) {
			b.Edit(minio.DeploymentRef(miniosim.Namespace), func(o map[string]any) { under(o, "spec")["replicas"] = 0 })
		}, "Deployment minio is scaled to 0"},
		"there is no Deployment": {func(b *miniosim.Both) { b.Remove(minio.DeploymentRef(miniosim.Namespace)) }, "there is no Deployment minio"},
		"it is of another Deployment": {func(b *miniosim.Both) {
			b.Edit(minio.ReplicaSetRef(miniosim.Namespace, miniosim.Controller), func(o map[string]any) {
				under(o, "metadata")["ownerReferences"] = []any{map[string]any{"kind": "Deployment", "name": "minio", "uid": "uid-earlier", "controller": true}}
			})
		}, "Deployment minio has no pod"},
		"its ReplicaSet is another one of that name": {func(b *miniosim.Both) {
			b.Edit(singlePod, func(o map[string]any) {
				under(o, "metadata")["ownerReferences"].([]any)[0].(map[string]any)["uid"] = "uid-earlier"
			})
		}, "Deployment minio has no pod"},
		"what made it only has the ReplicaSet's name": {func(b *miniosim.Both) {
			b.Edit(singlePod, func(o map[string]any) {
				under(o, "metadata")["ownerReferences"].([]any)[0].(map[string]any)["kind"] = "Job"
			})
		}, "Deployment minio has no pod"},
		"only another one has its label": {func(b *miniosim.Both) {
			b.Crowd(true)
			b.Remove(singlePod)
		}, "Deployment minio has no pod"},
	} {
		t.Run(name, func(t *testing.T) {
			b, client := installedBoth()
			test.change(b)
			single, err := client.Single(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pod, serves := single.Serving()
			if serves != (test.lacks == "") || serves && pod.Name != singlePod.Name || !serves && single.Lacks() != test.lacks {
				t.Errorf("%s serves: %t; it lacks: %s", pod.Name, serves, single.Lacks())
			}
		})
	}
}

// TestAPodWhoseEndIsAwaitedIsStillThere: it may serve clients to its last second.
func TestAPodWhoseEndIsAwaitedIsStillThere(t *testing.T) {
	b, client := installedBoth()
	b.Edit(singlePod, func(o map[string]any) { under(o, "metadata")["deletionTimestamp"] = "2026-01-01T00:00:00Z" })
	single, err := client.Single(t.Context())
	if err != nil || len(single.Own()) != 1 {
		t.Errorf("%v: its pods are %+v", err, single.Own())
	}
	uid := single.Own()[0].UID
	if _, there, err := client.SinglePod(t.Context(), singlePod.Name, uid); err != nil || !there {
		t.Errorf("%v: it is there: %t", err, there)
	}
	if _, there, err := client.SinglePod(t.Context(), singlePod.Name, "uid-of-another"); err != nil || there {
		t.Errorf("%v: another one of its name is there: %t", err, there)
	}
}

func TestWhoElseCouldBeWrittenToIsNamed(t *testing.T) {
	b, client := installedBoth()
	crowded := func(want string) {
		t.Helper()
		single, err := client.Single(t.Context())
		if err != nil || !strings.Contains(single.Crowded(), want) || want == "" && single.Crowded() != "" {
			t.Errorf("%v: %q, want %q", err, single.Crowded(), want)
		}
	}
	crowded("")
	b.Crowd(true)
	crowded("minio-by-hand has the label app=minio but does not belong to Deployment minio")
	b.Crowd(false)
	b.Edit(minio.DeploymentRef(miniosim.Namespace), func(o map[string]any) { under(o, "spec")["replicas"] = 2 })
	crowded("Deployment minio asks for 2 pods")
	b.Remove(minio.DeploymentRef(miniosim.Namespace))
	crowded("minio-5d9c-1 has the label app=minio but does not belong to Deployment minio")
	b.Crowd(true) // what nothing made is not of a Deployment that is not there
	crowded("minio-5d9c-1, minio-by-hand has the label")
}

func TestWhatKeepsAnotherPodFromStarting(t *testing.T) {
	quota := func(status string) func(b *miniosim.Both) {
		return func(b *miniosim.Both) {
			b.Put(kube.Ref{Version: "v1", Resource: "resourcequotas", Namespace: miniosim.Namespace, Name: "small"}, `{"status":`+status+`}`)
		}
	}
	node := func(all ...any) func(b *miniosim.Both) {
		return func(b *miniosim.Both) { b.Edit(nodeA, conditions(all...)) }
	}
	ready := condition("Ready", "True")
	for name, test := range map[string]struct {
		change func(b *miniosim.Both)
		cause  string
	}{
		"nothing":                  {func(*miniosim.Both) {}, ""},
		"its node is gone":         {func(b *miniosim.Both) { b.Remove(nodeA) }, "gone a"},
		"it is cordoned":           {func(b *miniosim.Both) { b.Cordon("a", true) }, "cordoned a"},
		"it is not ready":          {node(condition("Ready", "False")), "not ready a"},
		"it does not answer":       {node(condition("Ready", "Unknown")), "not ready a"},
		"memory":                   {node(ready, condition("MemoryPressure", "True")), "MemoryPressure a"},
		"disk":                     {node(ready, condition("DiskPressure", "True")), "DiskPressure a"},
		"processes":                {node(ready, condition("PIDPressure", "True")), "PIDPressure a"},
		"other nodes":              {func(b *miniosim.Both) { b.Cordon("b", true); b.Remove(minio.NodeRef("c")) }, ""},
		"a quota that is used up":  {quota(`{"hard":{"pods":"7"},"used":{"pods":"7"}}`), ""}, // what takes another's place needs no more
		"a quota that is exceeded": {quota(`{"hard":{"limits.cpu":"900m","pods":"9"},"used":{"limits.cpu":"1","pods":"7"}}`), "quota small"},
		"it may not read quotas": {func(b *miniosim.Both) {
			quota(`{"hard":{"pods":"6"},"used":{"pods":"7"}}`)(b)
			b.Forbid("list resourcequotas")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, client := installedBoth()
			test.change(b)
			no, err := client.Successor(t.Context(), minio.SinglePod{Name: singlePod.Name, Node: "a", Controller: "uid-set"})
			if err != nil || no.Cause != test.cause || (no.Reason == "") != (test.cause == "") {
				t.Errorf("%+v, %v; want the cause %q", no, err, test.cause)
			}
		})
	}
}

// TestWhetherAnotherPodWouldStartMayNotBeKnown: that is no yes.
func TestWhetherAnotherPodWouldStartMayNotBeKnown(t *testing.T) {
	b, client := installedBoth()
	b.Forbid("get " + nodeA.String())
	if no, err := client.Successor(t.Context(), minio.SinglePod{Name: singlePod.Name, Node: "a", Controller: "uid-set"}); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("%+v, %v", no, err)
	}
}

// TestWhatIsCopiedToIsAReplicaThatIsHealthy, before any that is not; the others are tried after it.
func TestWhatIsCopiedToIsAReplicaThatIsHealthy(t *testing.T) {
	b, client := installedBoth()
	for i := range 5 {
		b.Run(i, miniosim.Pod{Node: "a"})
	}
	b.Run(5, miniosim.Pod{Message: "0/3 nodes are available"})
	b.Silence(0, true)
	got, err := client.Targets(t.Context())
	want := []string{"ha-minio-1:9000", "ha-minio-2:9000", "ha-minio-3:9000", "ha-minio-4:9000", "ha-minio-0:9000"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	b.Silence(1, true) // three of six are no quorum
	if got, err := client.Targets(t.Context()); err == nil {
		t.Errorf("without a quorum: %v", got)
	}
}

// TestASecretThatLacksSomethingIsNone: with an empty key MinIO takes a client for anybody.
func TestASecretThatLacksSomethingIsNone(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte("confidential"))
	for _, lacking := range []string{"MINIO_ACCESS_KEY", "MINIO_SECRET_KEY"} {
		b, client := installedBoth()
		b.Edit(minio.SecretRef(miniosim.Namespace), func(o map[string]any) {
			o["data"] = map[string]any{"MINIO_ACCESS_KEY": text, "MINIO_SECRET_KEY": text, lacking: ""}
		})
		if got, err := client.Credentials(t.Context()); err == nil || got != (minio.Credentials{}) || strings.Contains(err.Error(), "confidential") || strings.Contains(err.Error(), text) {
			t.Errorf("without %s: %+v, %v", lacking, got, err)
		}
	}
}

func TestAClaimOfTheSingleMinIOThatEndsSaysSo(t *testing.T) {
	b, client := installedBoth()
	claim, exists, err := client.SingleClaim(t.Context())
	if err != nil || !exists || claim.Ends {
		t.Fatalf("%v: the claim is %+v", err, claim)
	}
	if err := client.DeleteSingleClaim(t.Context(), "uid-of-another"); !errors.Is(err, kube.ErrOtherUID) {
		t.Errorf("another one: %v", err)
	}
	if err := client.DeleteSingleClaim(t.Context(), claim.UID); err != nil {
		t.Error(err)
	}
	if claim, exists, err := client.SingleClaim(t.Context()); err != nil || !exists || !claim.Ends {
		t.Errorf("%v: the claim is %+v", err, claim)
	}
	b.Remove(minio.SingleClaimRef(miniosim.Namespace))
	if _, exists, err := client.SingleClaim(t.Context()); err != nil || exists {
		t.Errorf("%v: it is there: %t", err, exists)
	}
}
