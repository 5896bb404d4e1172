package rook

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// operatorTagged is Rook's operator with an image of that tag.
func operatorTagged(tag string) string {
	return `{"spec":{"template":{"spec":{"containers":[{"name":"rook-ceph-operator","image":"docker.io/rook/ceph:` + tag + `"}]}}}}`
}

// withResource returns a client of a cluster with Rook 1.10.0 and one of its custom resources.
func withResource(of journal.Subject, object string) (*Custom, *kubesim.Objects, journal.Subject) {
	objects := kubesim.NewObjects()
	objects.Put(OperatorRef(), operatorTagged("v1.10.0"))
	of.UID = objects.Put(ResourceRef(of), object)
	return NewCustom(objects), objects, of
}

var (
	blockPool   = journal.RookPools(journal.KindCephBlockPool, "replicapool")
	filesystem  = journal.RookPools(journal.KindCephFilesystem, "rook-shared-fs")
	objectStore = journal.RookPools(journal.KindCephObjectStore, "rook-ceph-store")
)

// specOf returns what is asked of the object.
func specOf(t *testing.T, objects *kubesim.Objects, of journal.Subject) string {
	t.Helper()
	spec, err := json.Marshal(objects.Object(ResourceRef(of))["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(spec)
}

func TestEachKindOfResourceIsReducedToWhatDecisionsNeed(t *testing.T) {
	for name, test := range map[string]struct {
		of     journal.Subject
		object string
		want   journal.RookFacts
	}{
		"a cluster of all nodes": {
			journal.RookCluster, `{"spec":{"mon":{"count":1,"allowMultiplePerNode":true},"mgr":{"count":2},"storage":{"useAllNodes":true,"useAllDevices":true}}}`,
			journal.RookFacts{Version: "v1.10.0", Numbers: map[string]int{"/spec/mon/count": 1, "/spec/mgr/count": 2}, Storage: &journal.RookStorage{AllNodes: true}},
		},
		"a cluster of listed nodes": {
			journal.RookCluster, `{"spec":{"storage":{"useAllNodes":false,"nodes":[{"name":"b","devices":[{"name":"sdb"}]},{"name":"a"}]}}}`,
			journal.RookFacts{Version: "v1.10.0", Numbers: map[string]int{"/spec/mgr/count": 0}, Storage: &journal.RookStorage{Nodes: []string{"a", "b"}}},
		},
		"a cluster on claims": {
			journal.RookCluster, `{"spec":{"storage":{"storageClassDeviceSets":[{"name":"x"}]}}}`,
			journal.RookFacts{Version: "v1.10.0", Numbers: map[string]int{"/spec/mgr/count": 0}, Storage: &journal.RookStorage{Claims: true}},
		},
		"a cluster elsewhere": {journal.RookCluster, `{"spec":{"external":{"enable":true}}}`, journal.RookFacts{Version: "v1.10.0"}},
		"a block pool":        {blockPool, `{"spec":{"failureDomain":"host","replicated":{"size":1}}}`, journal.RookFacts{Numbers: map[string]int{"/spec/replicated/size": 1}}},
		"an erasure-coded one": {
			blockPool, `{"spec":{"replicated":{"size":0},"erasureCoded":{"dataChunks":2}}}`, journal.RookFacts{},
		},
		"one on each disk": {blockPool, `{"spec":{"failureDomain":"osd","replicated":{"size":1}}}`, journal.RookFacts{Numbers: map[string]int{"/spec/replicated/size": 1}}},
		"one on racks":     {blockPool, `{"spec":{"failureDomain":"rack","replicated":{"size":1}}}`, journal.RookFacts{}},
		"one on some disks": {
			blockPool, `{"spec":{"failureDomain":"host","deviceClass":"ssd","replicated":{"size":1}}}`, journal.RookFacts{},
		},
		"one with two on each host": {blockPool, `{"spec":{"replicated":{"size":2,"replicasPerFailureDomain":2}}}`, journal.RookFacts{}},
		"one in halls of a host":    {blockPool, `{"spec":{"replicated":{"size":2,"subFailureDomain":"osd"}}}`, journal.RookFacts{}},
		"a filesystem of which one pool has a root of its own": {
			filesystem, `{"spec":{"metadataPool":{"replicated":{"size":1}},"dataPools":[{"crushRoot":"cold","replicated":{"size":2}}]}}`,
			journal.RookFacts{Numbers: map[string]int{"/spec/metadataPool/replicated/size": 1}},
		},
		"a cluster elsewhere as Rook writes it": {
			journal.RookCluster, `{"spec":{"external":{"enable":true},"storage":{},"mon":{"count":1}}}`, journal.RookFacts{Version: "v1.10.0"},
		},
		"a cluster that is being deleted": {
			journal.RookCluster, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"mon":{"count":1},"storage":{"useAllNodes":true}}}`,
			journal.RookFacts{Version: "v1.10.0"},
		},
		"a filesystem": {
			filesystem, `{"spec":{"metadataPool":{"replicated":{"size":1}},"dataPools":[{"replicated":{"size":2}},{"erasureCoded":{}},{"replicated":{"size":3}}]}}`,
			journal.RookFacts{Numbers: map[string]int{"/spec/metadataPool/replicated/size": 1, "/spec/dataPools/0/replicated/size": 2, "/spec/dataPools/2/replicated/size": 3}},
		},
		"a filesystem whose pools have names": {
			filesystem, `{"metadata":{"name":"rook-shared-fs"},"spec":{"metadataPool":{"replicated":{"size":1}},"dataPools":[{"name":"fast","replicated":{"size":2}},{"replicated":{"size":3}},{"name":"coded","erasureCoded":{}}]}}`,
			journal.RookFacts{
				Numbers: map[string]int{"/spec/metadataPool/replicated/size": 1, "/spec/dataPools/0/replicated/size": 2, "/spec/dataPools/1/replicated/size": 3},
				Names:   journal.RookNames{"/spec/dataPools/0/replicated/size": "rook-shared-fs-fast"},
			},
		},
		"a block pool with a name": {
			blockPool, `{"spec":{"name":".mgr","replicated":{"size":1}}}`,
			journal.RookFacts{Numbers: map[string]int{"/spec/replicated/size": 1}, Names: journal.RookNames{"/spec/replicated/size": ".mgr"}},
		},
		"an object store": {
			objectStore, `{"spec":{"metadataPool":{"replicated":{"size":1}},"dataPool":{"replicated":{"size":2}}}}`,
			journal.RookFacts{Numbers: map[string]int{"/spec/metadataPool/replicated/size": 1, "/spec/dataPool/replicated/size": 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, of := withResource(test.of, test.object)
			got, err := client.ReadResource(t.Context(), of)
			test.want.UID, test.want.Generation = of.UID, 1
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v: read (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestTheVersionIsPartOfTheCluster(t *testing.T) {
	client, objects, of := withResource(journal.RookCluster, `{"spec":{"mon":{"count":1},"mgr":{"count":1}}}`)
	read := func(version, unknown string, numbers int) {
		t.Helper()
		facts, err := client.ReadResource(t.Context(), of)
		if err != nil || facts.Version != version || !strings.Contains(facts.Unversioned, unknown) || (unknown == "") != (facts.Unversioned == "") || len(facts.Numbers) != numbers {
			t.Errorf("%v: read %+v, want version %q, %q", err, facts, version, unknown)
		}
	}
	read("v1.10.0", "", 2)
	objects.Put(OperatorRef(), operatorTagged("v1.8.9"))
	read("v1.8.9", "", 1) // has one mgr
	objects.Put(OperatorRef(), operatorTagged("mine"))
	read("", `the tag of image "docker.io/rook/ceph:mine" of Deployment rook-ceph/rook-ceph-operator is not a version`, 1)
	objects.Put(NamespaceRef(), `{}`)
	objects.Forbid("get deployments")
	read("", "forbidden", 1)
	objects.Allow("get deployments")
	objects.Remove(OperatorRef())
	read("", "not found", 1)
	objects.Put(OperatorRef(), operatorTagged("v1.10.0"))
	objects.Remove(ResourceRef(of))
	if _, err := client.ReadResource(t.Context(), of); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("without a CephCluster: %v", err)
	}
}

func TestOnlyWhatIsToChangeIsChanged(t *testing.T) {
	two := map[string]journal.RookNumber{"/spec/metadataPool/replicated/size": {From: 1, To: 3}, "/spec/dataPools/0/replicated/size": {From: 2, To: 3}}
	nodes := []journal.RookNode{{Name: "a", Hostname: "a"}, {Name: "b", Hostname: "b.x"}}
	for name, test := range map[string]struct {
		of            journal.Subject
		before, after string
		change        journal.RookChange
	}{
		"numbers": {
			filesystem, `{"spec":{"metadataPool":{"replicated":{"size":1,"x":1}},"dataPools":[{"replicated":{"size":2}}],"later":1}}`,
			`{"dataPools":[{"replicated":{"size":3}}],"later":1,"metadataPool":{"replicated":{"size":3,"x":1}}}`,
			journal.RookChange{Numbers: two},
		},
		"what is left of the numbers": {
			filesystem, `{"spec":{"metadataPool":{"replicated":{"size":3}},"dataPools":[{"replicated":{"size":2}}]}}`,
			`{"dataPools":[{"replicated":{"size":3}}],"metadataPool":{"replicated":{"size":3}}}`,
			journal.RookChange{Numbers: two},
		},
		"nodes": {
			journal.RookCluster, `{"spec":{"storage":{"useAllNodes":false,"nodes":[{"name":"a","devices":[{"name":"sdb"}]},{"name":"c"}],"x":1}}}`,
			`{"storage":{"nodes":[{"devices":[{"name":"sdb"}],"name":"a"},{"name":"c"},{"name":"b.x"}],"useAllNodes":false,"x":1}}`,
			journal.RookChange{Nodes: nodes},
		},
		"nodes instead of all": {
			journal.RookCluster, `{"spec":{"storage":{"useAllNodes":true}}}`,
			`{"storage":{"nodes":[{"name":"a"},{"name":"b.x"}],"useAllNodes":false}}`,
			journal.RookChange{Nodes: nodes},
		},
		"all that are listed already": {
			journal.RookCluster, `{"spec":{"storage":{"useAllNodes":true,"nodes":[{"name":"a"},{"name":"b.x"}]}}}`,
			`{"storage":{"nodes":[{"name":"a"},{"name":"b.x"}],"useAllNodes":false}}`,
			journal.RookChange{Nodes: nodes},
		},
		"nodes where neither is said": {
			journal.RookCluster, `{"spec":{"storage":{}}}`, `{"storage":{"nodes":[{"name":"a"},{"name":"b.x"}]}}`, journal.RookChange{Nodes: nodes},
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, objects, of := withResource(test.of, test.before)
			resource := ResourceRef(of).Resource
			set, err := client.ChangeResource(t.Context(), of, test.change)
			read, readErr := client.ReadResource(t.Context(), of)
			if err := errors.Join(err, readErr); err != nil || test.change.Lacks(set) != "" || !cmp.Equal(set, read) {
				t.Fatalf("%v: set %+v, read %+v", err, set, read)
			}
			if now := specOf(t, objects, of); now != test.after || objects.Calls("patch "+resource) != 1 {
				t.Errorf("it is %s after %d patches", now, objects.Calls("patch "+resource))
			}
			if _, err := client.ChangeResource(t.Context(), of, test.change); err != nil || objects.Calls("patch "+resource) != 1 {
				t.Errorf("done again: %v, %d patches", err, objects.Calls("patch "+resource))
			}
		})
	}
}

var raised = journal.RookChange{Numbers: map[string]journal.RookNumber{"/spec/replicated/size": {From: 1, To: 2}}}

// TestANumberThatSomebodyElseSetIsLeftAlone: what was to be raised would be lowered.
func TestANumberThatSomebodyElseSetIsLeftAlone(t *testing.T) {
	for name, when := range map[string]string{"before": "", "as the patch arrives": "patch"} {
		client, objects, of := withResource(blockPool, `{"spec":{"replicated":{"size":1}}}`)
		set := func() {
			objects.Edit(ResourceRef(of), func(object map[string]any) {
				object["spec"] = map[string]any{"replicated": map[string]any{"size": 3}}
			})
		}
		if when == "" {
			set()
		} else {
			objects.BeforeEffect = func(string) { set() }
		}
		_, err := client.ChangeResource(t.Context(), of, raised)
		if !errors.Is(err, kube.ErrConflict) || !strings.Contains(err.Error(), "replicated.size is 3 now") || specOf(t, objects, of) != `{"replicated":{"size":3}}` {
			t.Errorf("%s: %v: it is %s", name, err, specOf(t, objects, of))
		}
	}
}

// TestNodesThatSomebodyElseListsMeanwhileStay: another EKCO, or a purge that takes one off.
func TestNodesThatSomebodyElseListsMeanwhileStay(t *testing.T) {
	for name, before := range map[string]string{
		"a list": `{"spec":{"storage":{"useAllNodes":false,"nodes":[{"name":"x"}]}}}`, "no list": `{"spec":{"storage":{"useAllNodes":true}}}`,
	} {
		client, objects, of := withResource(journal.RookCluster, before)
		others := 0
		objects.BeforeEffect = func(string) {
			if others++; others == 1 {
				objects.Edit(ResourceRef(of), func(object map[string]any) {
					object["spec"].(map[string]any)["storage"].(map[string]any)["nodes"] = []any{map[string]any{"name": "c"}}
				})
			}
		}
		_, err := client.ChangeResource(t.Context(), of, journal.RookChange{Nodes: []journal.RookNode{{Hostname: "a"}}})
		if now := specOf(t, objects, of); err != nil || now != `{"storage":{"nodes":[{"name":"c"},{"name":"a"}],"useAllNodes":false}}` {
			t.Errorf("%s: %v: it is %s", name, err, now)
		}
	}
}

func TestAnotherResourceOfTheNameIsLeftAlone(t *testing.T) {
	client, objects, of := withResource(blockPool, `{"spec":{"replicated":{"size":1}}}`)
	objects.Remove(ResourceRef(of))
	if _, err := client.ChangeResource(t.Context(), of, raised); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	objects.Put(ResourceRef(of), `{"spec":{"replicated":{"size":1}}}`)
	if _, err := client.ChangeResource(t.Context(), of, raised); !errors.Is(err, kube.ErrOtherUID) || objects.Calls("patch cephblockpools") != 0 {
		t.Errorf("another: %v", err)
	}
	cluster, _, of := withResource(journal.RookCluster, `{"spec":{}}`)
	if _, err := cluster.ChangeResource(t.Context(), of, journal.RookChange{Nodes: []journal.RookNode{{Hostname: "a"}}}); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("without a storage section: %v", err)
	}
}

func TestAWebhookThatMakesSomethingElseIsAnError(t *testing.T) {
	client, objects, of := withResource(blockPool, `{"spec":{"replicated":{"size":1}}}`)
	objects.OnWrite = func(_ kube.Ref, object map[string]any) {
		object["spec"] = map[string]any{"replicated": map[string]any{"size": 1}}
	}
	if _, err := client.ChangeResource(t.Context(), of, raised); err == nil || !strings.Contains(err.Error(), "replicated.size is 1; look for a webhook") {
		t.Errorf("got %v", err)
	}
}

// TestManagersOfWhichNobodySaysHowManyAreSetToo: Rook has one then.
func TestManagersOfWhichNobodySaysHowManyAreSetToo(t *testing.T) {
	for before, want := range map[string]string{
		`{"spec":{"mon":{"count":1}}}`:               `{"mgr":{"count":2},"mon":{"count":3}}`,
		`{"spec":{"mgr":{"x":1},"mon":{"count":1}}}`: `{"mgr":{"count":2,"x":1},"mon":{"count":3}}`,
	} {
		client, objects, of := withResource(journal.RookCluster, before)
		change := journal.RookChange{Numbers: map[string]journal.RookNumber{journal.RookMgrs: {From: 0, To: 2}, journal.RookMons: {From: 1, To: 3}}}
		facts, err := client.ChangeResource(t.Context(), of, change)
		if err != nil || facts.Numbers[journal.RookMgrs] != 2 {
			t.Errorf("%v: it is %+v", err, facts)
		}
		if got := specOf(t, objects, of); got != want {
			t.Errorf("of %s is made %s, want %s", before, got, want)
		}
	}
}
