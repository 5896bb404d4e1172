package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// world is all that purges change, as the cluster itself tells it.
type world struct {
	// Nodes are the UIDs by name, Deployments those of Rook's OSDs.
	Nodes, Deployments map[string]string
	// Entries are the nodes that the CephCluster lists, as they are written.
	Entries map[string]string
	// CephCluster is the rest of its spec.
	CephCluster string
	// CrushHosts are the OSDs in the CRUSH tree, by host; OSDs are the UUIDs in
	// the OSD map, by id; Keys are the OSDs that may log in.
	CrushHosts map[string][]int
	OSDs       map[int]string
	Keys       []string
	// Members are the ids in etcd by name.
	Members map[string]string
	// Kubeadm is kubeadm-config; Endpoints are its primaries.
	Kubeadm   map[string]string
	Endpoints []string
}

// look reads the world.
func (w *wholeCluster) look() world {
	w.t.Helper()
	seen := world{
		Nodes: map[string]string{}, Deployments: map[string]string{}, Entries: map[string]string{},
		CrushHosts: map[string][]int{}, OSDs: map[int]string{}, Members: map[string]string{},
	}
	w.lookAtKubernetes(&seen)
	w.lookAtCeph(&seen)
	members, err := w.etcd.Client("primary-1", "primary-2").Members(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, member := range members {
		seen.Members[member.Name] = member.ID.String()
	}
	return seen
}

func (w *wholeCluster) lookAtKubernetes(seen *world) {
	w.t.Helper()
	nodes, err := w.client.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, node := range nodes.Items {
		seen.Nodes[node.Name] = string(node.UID)
	}
	deployments, err := w.client.AppsV1().Deployments("rook-ceph").List(w.t.Context(), metav1.ListOptions{LabelSelector: "app=rook-ceph-osd"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range deployments.Items {
		seen.Deployments[d.Name] = fmt.Sprintf("%s, %d replicas", d.UID, *d.Spec.Replicas)
	}
	spec := w.cephClusterSpec()
	storage := spec["storage"].(map[string]any)
	for _, entry := range storage["nodes"].([]any) {
		text, err := json.Marshal(entry)
		if err != nil {
			w.t.Fatal(err)
		}
		seen.Entries[entry.(map[string]any)["name"].(string)] = string(text)
	}
	delete(storage, "nodes")
	seen.CephCluster = fmt.Sprint(spec)
	config, err := w.client.CoreV1().ConfigMaps("kube-system").Get(w.t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	seen.Kubeadm = config.Data
	for line := range strings.Lines(config.Data["ClusterStatus"]) {
		if name, ok := strings.CutPrefix(line, "  primary-"); ok {
			seen.Endpoints = append(seen.Endpoints, "primary-"+strings.Trim(name, ":\n"))
		}
	}
	delete(seen.Kubeadm, "ClusterStatus")
}

func (w *wholeCluster) cephClusterSpec() map[string]any {
	w.t.Helper()
	text, err := w.client.RESTClient().Get().AbsPath("/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/rook-ceph").DoRaw(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var cluster struct {
		Spec map[string]any `json:"spec"`
	}
	if err := json.Unmarshal(text, &cluster); err != nil {
		w.t.Fatal(err)
	}
	return cluster.Spec
}

func (w *wholeCluster) lookAtCeph(seen *world) {
	w.t.Helper()
	var tree struct {
		Nodes []struct {
			Name, Type string
			ID         int
			Children   []int
		} `json:"nodes"`
	}
	var dump struct {
		OSDs []struct {
			OSD  int    `json:"osd"`
			UUID string `json:"uuid"`
		} `json:"osds"`
	}
	var keys struct {
		Dump []struct {
			Entity string `json:"entity"`
		} `json:"auth_dump"`
	}
	w.askCeph(&tree, "osd", "tree")
	w.askCeph(&dump, "osd", "dump")
	w.askCeph(&keys, "auth", "ls")
	for _, node := range tree.Nodes {
		if node.Type == "host" {
			slices.Sort(node.Children)
			seen.CrushHosts[node.Name] = node.Children
		}
	}
	for _, osd := range dump.OSDs {
		seen.OSDs[osd.OSD] = osd.UUID
	}
	for _, key := range keys.Dump {
		if strings.HasPrefix(key.Entity, "osd.") {
			seen.Keys = append(seen.Keys, key.Entity)
		}
	}
	slices.Sort(seen.Keys)
}

func (w *wholeCluster) askCeph(into any, args ...string) {
	w.t.Helper()
	if err := json.Unmarshal([]byte(w.ceph.Ceph(append(args, "-f", "json")...)), into); err != nil {
		w.t.Fatalf("ceph %v: %v", args, err)
	}
}

// without is the world after the purge of a node: nothing of it is left, and
// nothing else is different.
func (s world) without(node string) world {
	for _, id := range s.CrushHosts[node] {
		s = s.withoutOSD(id)
	}
	return s.withoutKubernetes(node).withoutHost(node)
}

// withoutKubernetes is what remains when only Ceph still has the node. Its
// Deployments are gone too.
func (s world) withoutKubernetes(node string) world {
	for _, id := range s.CrushHosts[node] {
		s.Deployments = less(s.Deployments, fmt.Sprintf("rook-ceph-osd-%d", id))
	}
	s.Nodes, s.Entries, s.Members = less(s.Nodes, node), less(s.Entries, node), less(s.Members, node)
	s.Endpoints = slices.DeleteFunc(slices.Clone(s.Endpoints), func(name string) bool { return name == node })
	return s
}

func (s world) withoutHost(node string) world {
	s.CrushHosts = less(s.CrushHosts, node)
	return s
}

func (s world) withoutOSD(id int) world {
	s.OSDs = less(s.OSDs, id)
	s.Keys = slices.DeleteFunc(slices.Clone(s.Keys), func(key string) bool { return key == fmt.Sprintf("osd.%d", id) })
	return s
}

func less[K comparable, V any](all map[K]V, gone K) map[K]V {
	rest := maps.Clone(all)
	delete(rest, gone)
	return rest
}

// want compares the world with what it should be.
func (w *wholeCluster) want(t *testing.T, want world) {
	t.Helper()
	if diff := cmp.Diff(want, w.look()); diff != "" {
		t.Errorf("the cluster is not as it should be (-want +got):\n%s", diff)
	}
}
