package e2e

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/kurl"
)

// olderRook is an API server with the definitions and the examples of an older Rook, and EKCO's
// clients with the permissions that it has.
type olderRook struct {
	*cluster
	// path is where the API has the resource of the kind, by its name.
	paths map[string]string
	// custom and pods are EKCO's clients.
	custom *rook.Custom
	pods   *rook.Pods
}

// TestCustomResourcesOfOlderRooksAreReadAndChanged puts what EKCO reads and changes before a real
// API server with the definitions of older versions of Rook, and with the examples that each
// ships. 1.4 is the first to run ceph in a tools pod, and its definitions have no types for much;
// 1.6 is the first whose definitions have nothing stored that they do not name; from 1.8 on data
// pools of a filesystem have names.
func TestCustomResourcesOfOlderRooksAreReadAndChanged(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "--primaries", "1", "--workers", "0")
	c.applyShippedRBAC()
	c.kubectl("create", "namespace", kurl.RookNamespace)
	c.applyShipped("rook")
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfigFor("kurl/ekco", nil))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := kube.NewObjects(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []struct{ minor, operator string }{{"1.4", "v1.4.9"}, {"1.6", "v1.6.11"}, {"1.8", "v1.8.10"}} {
		t.Run(version.minor, func(t *testing.T) {
			of := *c
			of.t = t
			r := &olderRook{cluster: &of, custom: rook.NewCustom(objects), pods: rook.NewPods(objects)}
			r.install(version.minor, version.operator)
			r.followsNodes(version.operator)
			r.followsHosts()
			r.spreadsMDS()
			r.remove()
		})
	}
}

// install applies the definitions, and the examples of what they define.
func (r *olderRook) install(version, operator string) {
	r.t.Helper()
	manifests := kurl.RookManifests(r.t, filepath.Join("..", "crds"), version)
	r.apply(kurl.RookDefinitions(r.t, manifests))
	r.waitRookCRDs()
	r.apply(kurl.RookOperator(operator))
	r.paths = map[string]string{}
	for i, name := range []string{"cluster.yaml", "pool.yaml", "filesystem.yaml", "object.yaml"} {
		for _, object := range kurl.Documents(r.t, manifests, name) {
			kind, _ := object["kind"].(string)
			if !strings.HasPrefix(kind, "Ceph") {
				continue
			}
			r.apply(object)
			r.paths[kind] = kurl.RookPlurals[i] + "/" + object["metadata"].(map[string]any)["name"].(string)
		}
	}
}

// remove takes all of it away again.
func (r *olderRook) remove() {
	r.t.Helper()
	for _, plural := range kurl.RookPlurals {
		r.kubectl("delete", "crd", plural+".ceph.rook.io", "--wait")
	}
}

// spec is what is asked of the resource of a kind.
func (r *olderRook) spec(kind string) map[string]any {
	r.t.Helper()
	plural, name, _ := strings.Cut(r.paths[kind], "/")
	return r.rookSpec(plural, name)
}

// subject is what the journal calls the resource of a kind.
func (r *olderRook) subject(kind string) journal.Subject {
	_, name, _ := strings.Cut(r.paths[kind], "/")
	return journal.Subject{Kind: kind, Name: kurl.RookNamespace + "/" + name}
}

func (r *olderRook) read(of journal.Subject) journal.RookFacts {
	r.t.Helper()
	facts, err := r.custom.ReadResource(r.t.Context(), of)
	if err != nil {
		r.t.Fatal(err)
	}
	return facts
}

// followsNodes lists nodes in the place of all, and asks for more monitors. Of mgrs nothing is
// asked before Rook 1.9.
func (r *olderRook) followsNodes(version string) {
	r.t.Helper()
	of := journal.RookCluster
	facts := r.read(of)
	want := journal.RookFacts{
		UID: facts.UID, Generation: 1, Version: version, Numbers: map[string]int{journal.RookMons: 3},
		Storage: &journal.RookStorage{AllNodes: true},
	}
	if diff := cmp.Diff(want, facts); diff != "" {
		r.t.Errorf("of the CephCluster is read (-want +got):\n%s", diff)
	}
	r.change(of, journal.RookChange{
		Nodes:   []journal.RookNode{{Name: "n1", Hostname: "n1.local"}, {Name: "n2", Hostname: "n2"}},
		Numbers: map[string]journal.RookNumber{journal.RookMons: {From: 3, To: 5}},
	}, func(spec map[string]any) {
		storage := spec["storage"].(map[string]any)
		storage["useAllNodes"] = false
		storage["nodes"] = []any{map[string]any{"name": "n1.local"}, map[string]any{"name": "n2"}}
		spec["mon"].(map[string]any)["count"] = 5.0
	})
	r.change(of, journal.RookChange{Nodes: []journal.RookNode{{Name: "n3", Hostname: "n3"}}}, func(spec map[string]any) {
		storage := spec["storage"].(map[string]any)
		storage["nodes"] = append(storage["nodes"].([]any), map[string]any{"name": "n3"})
	})
}

// followsHosts changes the copies of each pool, to more and to fewer.
func (r *olderRook) followsHosts() {
	r.t.Helper()
	for kind, sizes := range map[string][]string{
		journal.KindCephBlockPool:   {"/spec/replicated/size"},
		journal.KindCephFilesystem:  {"/spec/metadataPool/replicated/size", "/spec/dataPools/0/replicated/size"},
		journal.KindCephObjectStore: {"/spec/metadataPool/replicated/size", "/spec/dataPool/replicated/size"},
	} {
		of := r.subject(kind)
		facts := r.read(of)
		slices.Sort(sizes)
		if is := slices.Sorted(maps.Keys(facts.Numbers)); !slices.Equal(is, sizes) || !slices.Equal(facts.Redundant, sizes) || facts.Generation != 1 {
			r.t.Errorf("of %s is read %+v", of.Name, facts)
		}
		for _, to := range []int{4, 2} {
			change := journal.RookChange{Numbers: map[string]journal.RookNumber{}}
			for _, place := range sizes {
				change.Numbers[place] = journal.RookNumber{From: r.read(of).Numbers[place], To: to}
			}
			r.change(of, change, func(spec map[string]any) {
				for _, place := range sizes {
					setNumber(spec, strings.TrimPrefix(place, "/spec/"), float64(to))
				}
			})
		}
	}
}

// setNumber sets the number at a place.
func setNumber(in any, place string, number float64) {
	name, rest, more := strings.Cut(place, "/")
	switch at := in.(type) {
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil {
			panic(err)
		}
		setNumber(at[i], rest, number)
	case map[string]any:
		if !more {
			at[name] = number
			return
		}
		setNumber(at[name], rest, number)
	}
}

// change makes a change, twice, and compares all that is asked of the resource then.
func (r *olderRook) change(of journal.Subject, change journal.RookChange, expect func(spec map[string]any)) {
	r.t.Helper()
	want := r.spec(of.Kind)
	expect(want)
	before := r.read(of)
	of.UID = before.UID
	for range 2 {
		facts, err := r.custom.ChangeResource(r.t.Context(), of, change)
		if err != nil || change.Lacks(facts) != "" || facts.Generation != before.Generation+1 {
			r.t.Errorf("%v: changed to %+v, which lacks %s", err, facts, change.Lacks(facts))
		}
	}
	if diff := cmp.Diff(want, r.spec(of.Kind)); diff != "" {
		r.t.Errorf("of %s is asked (-want +got):\n%s", of.Name, diff)
	}
}

// spreadsMDS leaves Rook's own placement alone, and replaces kURL's for a single node.
func (r *olderRook) spreadsMDS() {
	r.t.Helper()
	plural, name, _ := strings.Cut(r.paths[journal.KindCephFilesystem], "/")
	of := journal.RookMDS(name)
	facts, err := r.pods.Read(r.t.Context(), of)
	if err != nil || facts.OneNode {
		r.t.Errorf("%v: Rook's own placement is read as %+v", err, facts)
	}
	patch, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec/metadataServer/placement", "value": kurl.SingleNodeMDS()["placement"]}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.kubectl("-n", kurl.RookNamespace, "patch", plural, name, "--type=json", "--patch", string(patch))
	if facts, err = r.pods.Read(r.t.Context(), of); err != nil || !facts.OneNode || facts.Spread {
		r.t.Fatalf("%v: kURL's placement is read as %+v", err, facts)
	}
	want := r.spec(journal.KindCephFilesystem)
	want["metadataServer"].(map[string]any)["placement"].(map[string]any)["podAntiAffinity"] = asJSON(r.t, kurl.SpreadMDS())
	of.UID = facts.UID
	for range 2 {
		if set, err := r.pods.Change(r.t.Context(), of, journal.RookPodsInput{Nodes: 2}); err != nil || !set.Spread {
			r.t.Errorf("%v: set is %+v", err, set)
		}
	}
	if diff := cmp.Diff(want, r.spec(journal.KindCephFilesystem)); diff != "" {
		r.t.Errorf("of the filesystem is asked (-want +got):\n%s", diff)
	}
}
