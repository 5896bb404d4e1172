package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/test/kurl"
)

// rookUnderShippedPermissions asks the real API server what EKCO asks of Rook,
// as the service account that kURL gives it.
func (w *wholeCluster) rookUnderShippedPermissions(t *testing.T) {
	before := w.look()
	config, err := clientcmd.BuildConfigFromFlags("", w.kubeconfigFor("kurl/ekco", nil))
	if err != nil {
		t.Fatal(err)
	}
	api, err := rook.NewClient(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := api.Detect(t.Context())
	if err != nil || !found.Present || found.Version.String() != "v1.10.6" {
		t.Errorf("found %+v, %v", found, err)
	}
	t.Run("exec", func(t *testing.T) { w.rookExec(t, config, api) })
	t.Run("the Deployments of a host's OSDs", func(t *testing.T) { w.rookDeployments(t, api) })
	t.Run("the list of storage nodes", func(t *testing.T) { w.rookStorageNodes(t, config, api) })
	w.userManagedList(t)
	w.want(t, before)
}

// userManagedList asks what a purge would do when the list of storage nodes is
// the installer's.
func (w *wholeCluster) userManagedList(t *testing.T) {
	o := w.install(t, map[string]string{"rook_storage_nodes": `'[{"name": "worker-1"}]'`})
	output := o.mustEkco("purge-node", "worker-1", "--dry-run", "--kubeconfig", o.kubeconfig)
	if strings.Contains(output, "remove-storage-entry") || !strings.Contains(output, "the list is the installer's") {
		t.Errorf("the entry in the CephCluster would not be left alone:\n%s", output)
	}
}

func (w *wholeCluster) rookExec(t *testing.T, config *rest.Config, api *rook.Client) {
	pod, err := api.ToolsPod(t.Context(), rook.Version{})
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, code, err := api.Exec(t.Context(), pod, []string{"ceph", "-f", "json", "version"})
	if err != nil || code != 0 || !strings.Contains(string(stdout), "ceph version") {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	const notEmpty = 39
	_, stderr, code, err := api.Exec(t.Context(), pod, []string{"ceph", "osd", "crush", "rm", toolsNode})
	if err != nil || code != notEmpty || !strings.Contains(string(stderr), "ENOTEMPTY") {
		t.Errorf("a refusal: exit %d, %v: %s", code, err, stderr)
	}
	// Without the verb get there is no WebSocket, so this was SPDY.
	at := w.client.CoreV1().RESTClient().Get().Namespace("rook-ceph").Resource("pods").Name(pod.Name).SubResource("exec").
		Param("command", "ceph").Param("command", "version").Param("container", pod.Container).Param("stdout", "true").URL()
	webSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := webSocket.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: new(strings.Builder)}); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("exec over a WebSocket under the shipped permissions: %v, want that it is forbidden", err)
	}
	if err := kubeSentinel(api.Exec(t.Context(), rook.Pod{Name: "no-such-pod", Container: kurl.ToolsPod}, []string{"ceph"})); !errors.Is(err, kube.ErrNotFound) {
		t.Errorf("exec into a pod that is not there: %v", err)
	}
}

func kubeSentinel(_, _ []byte, _ int, err error) error { return err }

// deploymentsOn returns the Deployments that are bound to a machine.
func deploymentsOn(t *testing.T, api *rook.Client, hostname string) ([]rook.OSDDeployment, error) {
	all, err := api.OSDDeployments(t.Context())
	return slices.DeleteFunc(all, func(d rook.OSDDeployment) bool { return d.Hostname != hostname }), err
}

func (w *wholeCluster) rookDeployments(t *testing.T, api *rook.Client) {
	w.apply(kurl.OSDDeployment("worker-9", 108))
	w.apply(kurl.OSDDeployment("worker-9", 109))
	osds, err := deploymentsOn(t, api, "worker-9")
	if err != nil || len(osds) != 2 || osds[0].Name != "rook-ceph-osd-108" || osds[0].OSD != 108 || osds[0].Replicas != 1 || osds[0].UID == "" {
		t.Fatalf("found %+v, %v", osds, err)
	}
	first, other := osds[0], osds[1]
	for _, write := range []func() error{
		func() error { return api.ScaleDown(t.Context(), first.Name, other.UID) },
		func() error { return api.DeleteDeployment(t.Context(), first.Name, other.UID) },
	} {
		if err := write(); !errors.Is(err, kube.ErrOtherUID) {
			t.Errorf("a Deployment of another UID: %v", err)
		}
	}
	for range 2 {
		if err := api.ScaleDown(t.Context(), first.Name, first.UID); err != nil {
			t.Error(err)
		}
	}
	if osds, err = deploymentsOn(t, api, "worker-9"); err != nil || len(osds) != 2 || osds[0].Replicas != 0 || osds[1].Replicas != 1 {
		t.Errorf("scaled down, found %+v, %v", osds, err)
	}
	for _, osd := range []rook.OSDDeployment{first, other} {
		if err := api.DeleteDeployment(t.Context(), osd.Name, osd.UID); err != nil {
			t.Error(err)
		}
		if err := api.DeleteDeployment(t.Context(), osd.Name, osd.UID); !errors.Is(err, kube.ErrNotFound) {
			t.Errorf("deleted twice: %v", err)
		}
	}
}

func (w *wholeCluster) rookStorageNodes(t *testing.T, config *rest.Config, api *rook.Client) {
	w.patchCephCluster(t, `[{"op":"add","path":"/spec/storage/nodes/-","value":{"name":"worker-9","devices":[{"name":"sdb","config":{"osdsPerDevice":"2"}}]}}]`)
	node, err := api.StorageNode(t.Context(), "w9.example", "worker-9")
	if err != nil || node.Name != "worker-9" || node.UseAllNodes || !strings.Contains(string(node.Entry), "osdsPerDevice") {
		t.Fatalf("found %+v, %v", node, err)
	}
	listed := func() bool {
		nodes := w.cephClusterSpec()["storage"].(map[string]any)["nodes"].([]any)
		return slices.ContainsFunc(nodes, func(n any) bool { return n.(map[string]any)["name"] == "worker-9" })
	}
	stays := func(why string, node rook.StorageNode) {
		t.Helper()
		if removed, err := api.RemoveStorageNode(t.Context(), node); removed != nil || err != nil || !listed() {
			t.Errorf("%s: %s was removed, %v", why, removed, err)
		}
	}
	w.patchCephCluster(t, `[{"op":"replace","path":"/spec/storage/useAllNodes","value":true}]`)
	stays("useAllNodes is set", node)
	w.patchCephCluster(t, `[{"op":"replace","path":"/spec/storage/useAllNodes","value":false}]`)
	stays("another CephCluster", rook.StorageNode{ClusterUID: "another", Name: node.Name, Entry: node.Entry})

	// The list changes between the look and the patch: the patch must not take
	// the entry that has the place now.
	moved := *config
	meddle := sync.OnceFunc(func() {
		w.patchCephCluster(t, `[{"op":"add","path":"/spec/storage/nodes/0","value":{"name":"came-between"}}]`)
	})
	moved.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				meddle()
			}
			return next.RoundTrip(r)
		})
	})
	racing, err := rook.NewClient(&moved, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	removed, err := racing.RemoveStorageNode(t.Context(), node)
	if err != nil || !sameJSON(removed, node.Entry) || listed() {
		t.Errorf("removed %s, %v", removed, err)
	}
	if removed, err := api.RemoveStorageNode(t.Context(), node); removed != nil || err != nil {
		t.Errorf("removed twice: %s, %v", removed, err)
	}
	w.patchCephCluster(t, `[{"op":"test","path":"/spec/storage/nodes/0/name","value":"came-between"},{"op":"remove","path":"/spec/storage/nodes/0"}]`)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func sameJSON(a, b json.RawMessage) bool { return string(a) == string(b) }

// patchCephCluster does what an administrator does.
func (w *wholeCluster) patchCephCluster(t *testing.T, patch string) {
	t.Helper()
	err := w.client.RESTClient().Patch(types.JSONPatchType).AbsPath("/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclusters/rook-ceph").
		Body([]byte(patch)).Do(t.Context()).Error()
	if err != nil {
		t.Fatalf("patch the CephCluster with %s: %v", patch, err)
	}
}
