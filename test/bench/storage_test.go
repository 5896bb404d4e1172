package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/test/apiproxy"
	"github.com/replicatedhq/ekco/test/ceph"
	"github.com/replicatedhq/ekco/test/kurl"
	"github.com/replicatedhq/ekco/test/rook"
)

// storagePatches is a proxy in front of the API server that notes when each patch of one of
// Rook's custom resources arrives, by the plural of its kind.
type storagePatches struct {
	*apiproxy.Proxy

	mu      sync.Mutex
	arrived map[string][]time.Time
}

func newStoragePatches(b *testing.B, config *rest.Config) *storagePatches {
	b.Helper()
	p := &storagePatches{arrived: map[string][]time.Time{}}
	p.Proxy = apiproxy.Start(b, config, apiproxy.HTTP1, func(next http.Handler) http.Handler { // an exec takes its connection over
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
			if request.Method == http.MethodPatch && len(parts) == 7 && parts[1] == "ceph.rook.io" {
				p.mu.Lock()
				p.arrived[parts[5]] = append(p.arrived[parts[5]], time.Now())
				p.mu.Unlock()
			}
			next.ServeHTTP(w, request)
		})
	})
	return p
}

// first returns when the first patch of such a kind after a moment arrived, which it waits for.
func (p *storagePatches) first(b *testing.B, plural string, after time.Time) (at time.Time) {
	b.Helper()
	eventually(b, 2*time.Minute, "a patch of "+plural+" arrives", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		i := slices.IndexFunc(p.arrived[plural], func(t time.Time) bool { return t.After(after) })
		if i >= 0 {
			at = p.arrived[plural][i]
		}
		return i >= 0
	})
	return at
}

// last returns when the last patch of a pool arrived.
func (p *storagePatches) last() (last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, plural := range kurl.RookPlurals[1:] {
		for _, at := range p.arrived[plural] {
			if at.After(last) {
				last = at
			}
		}
	}
	return last
}

// storageCluster has Rook's custom resources, a stand-in for its operator, and a real Ceph with
// OSDs on one host and disks on two others.
type storageCluster struct {
	*cluster
	ceph *ceph.Cluster
}

func startStorageCluster(b *testing.B) *storageCluster {
	b.Helper()
	processes := newCephProcesses(b)
	c := &storageCluster{cluster: startPlane(b, "--primaries", "1", "--workers", "1", "--exec-handler", processes.Program)}
	c.ceph = ceph.Start(b, ceph.Options{Hosts: map[string]int{"worker-1": 1}, Spare: map[string]int{"worker-2": 1, "worker-3": 1}})
	processes.use(b, c.ceph.Conf())
	c.createRookCRDs(b)
	c.applyObject(b, kurl.RookStorage("v1.10.6", "worker-1"))
	c.applyObject(b, kurl.OSDDeployment("worker-1", 0))
	c.kubectl(b, "-n", kurl.RookNamespace, "wait", "--for=condition=Available", "deployment/"+kurl.ToolsPod, "--timeout=60s")
	rook.Start(b, c.config, c.ceph)
	return c
}

// createRookCRDs makes Rook's namespace and definitions, and gives EKCO its permissions there.
func (c *cluster) createRookCRDs(b *testing.B) {
	b.Helper()
	c.kubectl(b, "create", "namespace", kurl.RookNamespace)
	c.kubectl(b, "create", "-f", kurl.RookCRDs(b, filepath.Join("..", "crds")))
	for _, plural := range kurl.RookPlurals {
		c.kubectl(b, "wait", "--for=condition=Established", "crd/"+plural+".ceph.rook.io", "--timeout=1m")
	}
	c.kubectl(b, "apply", "-k", filepath.Join("..", "..", "deploy", "rook"))
}

// addReady adds a node and returns when the API server told that it is ready.
func (c *storageCluster) addReady(b *testing.B, name string) time.Time {
	b.Helper()
	nodes, err := c.client.CoreV1().Nodes().Watch(b.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		b.Fatal(err)
	}
	defer nodes.Stop()
	ready := make(chan time.Time, 1)
	go func() {
		defer close(ready)
		for event := range nodes.ResultChan() {
			node, is := event.Object.(*corev1.Node)
			if is && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
				return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
			}) {
				ready <- time.Now()
				return
			}
		}
	}()
	run(b, c.program, "node", "add", name, "--role", "worker", "--dir", c.dir)
	at, told := <-ready
	if !told {
		b.Fatalf("nobody told that %s is ready", name)
	}
	return at
}

// waitCopies waits until every pool of a custom resource is asked to have so many copies.
func (c *storageCluster) waitCopies(b *testing.B, copies int) {
	b.Helper()
	want := fmt.Sprintf(`"size":%d`, copies)
	eventually(b, 5*time.Minute, fmt.Sprintf("Rook is asked for %d copies", copies), func() bool {
		count := 0
		for plural, name := range map[string]string{"cephblockpools": "replicapool", "cephfilesystems": "rook-shared-fs", "cephobjectstores": "rook-ceph-store"} {
			text, err := c.client.CoreV1().RESTClient().Get().AbsPath("/apis/ceph.rook.io/v1/namespaces", kurl.RookNamespace, plural, name).DoRaw(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			var object struct{ Spec json.RawMessage }
			if err := json.Unmarshal(text, &object); err != nil {
				b.Fatal(err)
			}
			count += strings.Count(string(object.Spec), want)
		}
		return count == 5
	})
}

// upSince returns when Ceph first called the OSDs of a host up, by its own record.
func (c *storageCluster) upSince(b *testing.B, host string) (last time.Time) {
	b.Helper()
	type osdMap struct {
		Modified string
		OSDs     []struct {
			OSD    int
			UpFrom int `json:"up_from"`
		}
	}
	read := func(args ...string) (of osdMap) {
		if err := json.Unmarshal([]byte(c.ceph.Ceph(append(append([]string{"osd", "dump"}, args...), "-f", "json")...)), &of); err != nil {
			b.Fatal(err)
		}
		return of
	}
	for _, osd := range read().OSDs {
		if !slices.Contains(c.ceph.Hosts()[host], osd.OSD) {
			continue
		}
		at, err := time.Parse("2006-01-02T15:04:05.999999-0700", read(fmt.Sprint(osd.UpFrom)).Modified)
		if err != nil || osd.UpFrom == 0 {
			b.Fatalf("osd.%d is up from %d: %v", osd.OSD, osd.UpFrom, err)
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// BenchmarkStorageFollows measures how soon Rook is asked for what follows from a node that is
// ready, and from OSDs of another host that are up: the last pool has a copy more. The stand-in
// for Rook's operator makes the OSDs, and nothing else is Rook's. Polls are a minute apart, so
// that none of it waits for one.
func BenchmarkStorageFollows(b *testing.B) {
	const times = 10
	c := startStorageCluster(b)
	seen := newStoragePatches(b, c.config)
	kubeconfig := c.kubeconfig(b, nil)
	seen.Redirect(b, kubeconfig)
	o := install(b, kubeconfig, map[string]string{"maintain_rook_storage_nodes": "true", "ceph_object_store": "rook-ceph-store", "settling_time": "1s"})
	operator := o.startReady(b)
	seen.first(b, "cephclusters", time.Time{}) // it has settled
	joined := 0
	for b.Loop() {
		logLoad(b)
		var took []time.Duration
		for range times {
			joined++
			ready := c.addReady(b, fmt.Sprintf("without-disk-%d", joined))
			took = append(took, seen.first(b, "cephclusters", ready).Sub(ready))
		}
		s := spreadOf(took)
		b.ReportMetric(milli(s.median), "ready-to-listed-median-ms")
		b.ReportMetric(milli(s.worst), "ready-to-listed-worst-ms")
		if joined > times {
			continue // there are no more hosts
		}
		for i, host := range []string{"worker-2", "worker-3"} {
			c.addReady(b, host)
			c.waitCopies(b, i+2)
			b.ReportMetric(milli(seen.last().Sub(c.upSince(b, host))), fmt.Sprintf("host-%d-up-to-last-pool-ms", i+2))
			eventually(b, 5*time.Minute, "Ceph has made the copies", func() bool { return strings.HasPrefix(c.ceph.Ceph("health"), "HEALTH_OK") })
		}
	}
	operator.Stop(grace)
}
