package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// clientRate is how many requests a client makes in a second. Each costs six servers 12 ms of a CPU.
const clientRate = 8

// minioCluster is a cluster with EKCO and with MinIO as kURL installs it. MinIO's pods are real servers.
// Subtests, here called scenes, run on it one after the other; t is the current one.
type minioCluster struct {
	t *testing.T
	c *cluster
	g *gate
	k *minioKubelet
	// o is the EKCO of the scene that runs.
	o          *operator
	kubeconfig string
	// steady is the client that few started.
	steady *miniotest.Steady
	// had is what clients had stored and were allowed before a migration, as the judge reports it.
	had string
}

// startMinio starts a cluster with this many workers (worker-1 and so on) and no primaries.
func startMinio(t *testing.T, disks minioDisks, workers int) *minioCluster {
	t.Helper()
	shell := filepath.Join(t.TempDir(), "exec") // the kubelet writes it
	if err := os.WriteFile(shell, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, "--primaries", "0", "--workers", fmt.Sprint(workers), "--exec-handler", shell)
	m := &minioCluster{t: t, c: c, g: newGate(t, c.config), k: startMinioKubelet(t, c, disks)}
	m.k.serveShell(shell)
	c.kubectl("create", "namespace", minioNamespace)
	c.applyShipped("namespace.yaml", "rbac.yaml", "minio")
	m.kubeconfig = c.kubeconfigFor("kurl/ekco", m.g)
	return m
}

// run runs a scene as a subtest. If it fails the test ends: later scenes need a healthy cluster.
func (m *minioCluster) run(t *testing.T, name string, scene func(*minioCluster)) {
	t.Helper()
	if !t.Run(name, func(t *testing.T) {
		m.t, m.c.t, m.k.t = t, t, t
		scene(m)
	}) {
		t.FailNow()
	}
}

// minioKeys returns the settings of an EKCO that manages MinIO, with more added. The settle time is shorter
// than MinIO takes to notice a new drive: EKCO then looks again. The cutover limit is long, so that a busy
// machine does not end the switch.
func minioKeys(more map[string]string) map[string]string {
	keys := map[string]string{
		"enable_ha_minio": "true", "minio_namespace": minioNamespace, "minio_volume_wait": "3s", "minio_heal_settle_time": "2s",
		"minio_cutover_limit": "10m", "minio_keep_source": "1s", "settling_time": "200ms",
	}
	maps.Copy(keys, more)
	return keys
}

// installEKCO sets up an EKCO without a journal; more is added to its settings.
func (m *minioCluster) installEKCO(more map[string]string) {
	m.t.Helper()
	err := m.c.client.CoreV1().ConfigMaps("kurl").Delete(m.t.Context(), "ekco-journal", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		m.t.Fatal(err)
	}
	m.o = newOperator(m.t, m.kubeconfig, minioKeys(more))
}

// reconfigure changes EKCO's settings and keeps its journal. EKCO must not be running.
func (m *minioCluster) reconfigure(more map[string]string) {
	m.t.Helper()
	path := m.o.journal
	m.o = newOperator(m.t, m.kubeconfig, minioKeys(more))
	m.o.journal = path
}

// installMinio installs MinIO as kURL does, with empty volumes, whatever was there. No EKCO may run.
func (m *minioCluster) installMinio() {
	m.t.Helper()
	ctx, now := m.t.Context(), metav1.NewDeleteOptions(0)
	core, apps, all := m.c.client.CoreV1(), m.c.client.AppsV1(), metav1.ListOptions{}
	m.eventually("nothing is left of MinIO", func() (bool, string) {
		for _, err := range []error{
			apps.Deployments(minioNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
			apps.StatefulSets(minioNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
			core.PersistentVolumeClaims(minioNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all),
			core.Pods(minioNamespace).DeleteCollection(ctx, *now, all),
		} {
			if err != nil {
				m.t.Fatal(err)
			}
		}
		pods, claims := m.c.minioPods(""), m.c.minioClaims()
		return len(pods)+len(claims) == 0, fmt.Sprintf("%d pods, claims %v", len(pods), claims)
	})
	m.c.kubectl("apply", "-f", m.c.minioManifest())
	m.waitServed()
}

// eventually waits for a condition. seldom does so once a second, for conditions that start a process.
func (m *minioCluster) eventually(what string, condition func() (bool, string)) {
	m.t.Helper()
	eventually(m.t, await.HangTimeout, what, condition)
}

func (m *minioCluster) seldom(what string, condition func() (bool, string)) {
	m.t.Helper()
	seldom(m.t, what, condition)
}

// minioGrace is terminationGracePeriodSeconds of MinIO's pods, instead of 30. A server ends within 0.1 s. On
// a lost node no kubelet ends the pod, and the whole period passes.
const minioGrace = 3

// minioManifest writes MinIO's manifest, with pods that [minioKubelet] runs, and returns its path.
func (c *cluster) minioManifest() (path string) {
	c.t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "kurl", "minio.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	const template, spec = "    metadata: {labels: ", "\n      containers:\n"
	left := strings.ReplaceAll(string(content), template, "    metadata: {annotations: {sim/kubelet: other}, labels: ")
	left = strings.ReplaceAll(left, spec, fmt.Sprint("\n      terminationGracePeriodSeconds: ", minioGrace, spec))
	if strings.Count(string(content), template) != 2 || strings.Count(string(content), spec) != 2 {
		c.t.Fatal("the templates of MinIO's pods are not as they were")
	}
	path = filepath.Join(c.t.TempDir(), "minio.yaml")
	if err := os.WriteFile(path, []byte(left), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// What follows asks the API server itself: kubectl costs more than all that it asks for.

// minioReplicas returns how many are asked for, and how many are ready, as in "6, 6 ready".
func (c *cluster) minioReplicas() string {
	c.t.Helper()
	set, err := c.client.AppsV1().StatefulSets(minioNamespace).Get(c.t.Context(), "ha-minio", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("%d, %d ready", *set.Spec.Replicas, set.Status.ReadyReplicas)
}

func (c *cluster) waitMinioReplicas(want string) {
	c.t.Helper()
	eventually(c.t, await.HangTimeout, "MinIO has "+want, func() (bool, string) {
		is, text := c.minioReplicas(), ""
		for _, pod := range c.minioPods("") {
			text += fmt.Sprintf("\n%s is %s on %q, ready %t", pod.Name, pod.Status.Phase, pod.Spec.NodeName, isReady(&pod))
		}
		return is == want, is + text
	})
}

// minioPods are those with the label, or all with "".
func (c *cluster) minioPods(label string) []corev1.Pod {
	c.t.Helper()
	pods, err := c.client.CoreV1().Pods(minioNamespace).List(c.t.Context(), metav1.ListOptions{LabelSelector: label})
	if err != nil {
		c.t.Fatal(err)
	}
	return pods.Items
}

// minioLeads is the selector of Service minio.
func (c *cluster) minioLeads() string {
	c.t.Helper()
	service, err := c.client.CoreV1().Services(minioNamespace).Get(c.t.Context(), "minio", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	selector, err := json.Marshal(service.Spec.Selector)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(selector)
}

// minioClaims are the UIDs of the claims, by name.
func (c *cluster) minioClaims() map[string]types.UID {
	c.t.Helper()
	claims, err := c.client.CoreV1().PersistentVolumeClaims(minioNamespace).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	uids := map[string]types.UID{}
	for _, claim := range claims.Items {
		uids[claim.Name] = claim.UID
	}
	return uids
}

func (c *cluster) scaleMinio(replicas int) {
	c.t.Helper()
	sets := c.client.AppsV1().StatefulSets(minioNamespace)
	if _, err := sets.Patch(c.t.Context(), "ha-minio", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// pointMinio has Service minio lead where the selector says.
func (c *cluster) pointMinio(selector string) {
	c.t.Helper()
	patch := []byte(`[{"op":"replace","path":"/spec/selector","value":` + selector + `}]`)
	if _, err := c.client.CoreV1().Services(minioNamespace).Patch(c.t.Context(), "minio", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) waitMinioSelector(want string) {
	c.t.Helper()
	eventually(c.t, await.HangTimeout, "Service minio selects "+want, func() (bool, string) {
		is := c.minioLeads()
		return is == want, is
	})
}

// cordon cordons or uncordons a node.
func (c *cluster) cordon(node string, cordoned bool) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned)
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// minioOn returns how many replicas run on each node.
func (c *cluster) minioOn() map[string]int {
	c.t.Helper()
	on := map[string]int{}
	for _, pod := range c.minioPods("app=ha-minio") {
		on[pod.Spec.NodeName]++
	}
	return on
}

// setMinioSecret writes a secret key for EKCO. That of the servers stays as it is.
func (c *cluster) setMinioSecret(key string) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"stringData":{"MINIO_SECRET_KEY":%q}}`, key)
	if _, err := c.client.CoreV1().Secrets(minioNamespace).Patch(c.t.Context(), "minio-credentials", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// s3 is a client of the server or proxy at an address.
func s3(t *testing.T, address string) *minio.Client {
	t.Helper()
	transport := &http.Transport{ResponseHeaderTimeout: await.HangTimeout}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, ""), Transport: transport, Region: "us-east-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// store writes an object, and repeats the write while the server answers 503. A server that has just
// started says that it is ready, but refuses writes until it has reached enough drives of the others. It
// tries those that did not answer every 15 s. Whether clients lose anything is not tested by this but by
// [miniotest.Steady], which makes each request once.
func store(ctx context.Context, client *minio.Client, bucket, key, content string) error {
	ctx, cancel := context.WithTimeout(ctx, await.HangTimeout)
	defer cancel()
	for {
		_, err := client.PutObject(ctx, bucket, key, strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{})
		if minio.ToErrorResponse(err).StatusCode != http.StatusServiceUnavailable || ctx.Err() != nil {
			return err
		}
	}
}

// fillBucket makes a new bucket and writes this many objects to it.
func fillBucket(t *testing.T, address, bucket string, objects int) {
	t.Helper()
	client := s3(t, address)
	eventually(t, await.HangTimeout, "bucket "+bucket+" is made", func() (bool, string) {
		err := client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{})
		// A request that failed because too few drives answered may have made the bucket all the same.
		return err == nil || minio.ToErrorResponse(err).Code == minio.BucketAlreadyOwnedByYou, fmt.Sprint(err)
	})
	var all sync.WaitGroup
	for first := range 10 {
		all.Go(func() {
			for i := first; i < objects; i += 10 {
				if err := store(t.Context(), client, bucket, fmt.Sprintf("object %d", i), strings.Repeat(fmt.Sprintln(i), 1000)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// ended returns how the actions of a kind ended, in order.
func (o *operator) ended(kind journal.ActionKind) (outcomes []journal.Outcome) {
	o.t.Helper()
	kinds := map[string]journal.ActionKind{}
	for _, event := range o.events() {
		payload, err := event.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.ActionRequested:
			kinds[event.Action] = p.Kind
		case *journal.ActionEnded:
			if kinds[event.Action] == kind {
				outcomes = append(outcomes, p.Outcome)
			}
		}
	}
	return outcomes
}

// waitDone waits until n actions of a kind are done, and fails if one ended otherwise. One that was abandoned does not
// count: a scene changes several objects, and EKCO may see one change before the next.
func (o *operator) waitDone(kind journal.ActionKind, n int) {
	o.t.Helper()
	seldom(o.t, fmt.Sprintf("%s is done %d times", kind, n), func() (bool, string) {
		ended, done := o.ended(kind), 0
		for _, outcome := range ended {
			switch outcome {
			case journal.OutcomeDone:
				done++
			case journal.OutcomeAbandoned:
			default:
				o.t.Fatalf("of %s ended %v", kind, ended)
			}
		}
		return done == n, fmt.Sprintf("%v\n%s", ended, o.shown())
	})
}

// waitMinio waits until all of this is in what EKCO says of MinIO.
func (o *operator) waitMinio(parts ...string) {
	o.t.Helper()
	seldom(o.t, fmt.Sprintf("EKCO says %q", parts), func() (bool, string) {
		says := o.mustEkco("status", "--component", "minio")
		for _, part := range parts {
			if !strings.Contains(says, part) {
				return false, says
			}
		}
		return true, ""
	})
}

// growAndServiceRepaired: only real components show that the shipped permissions suffice, that the API
// server takes the changes, and that clients of a real MinIO lose nothing meanwhile.
func growAndServiceRepaired(m *minioCluster) {
	t, c, k := m.t, m.c, m.k
	m.installMinio()
	c.setMinioSecret("outdated") // so that nothing is migrated
	fillBucket(t, k.proxy.Address(), "bucket", 0)
	steady := miniotest.StartSteady(t, k.proxy.Address(), "bucket", clientRate)
	m.installEKCO(nil)
	o := m.o
	o.startReady()
	o.waitMinio("Single", "Service minio selects minio; 0 of 0 replicas run, and it should have 6", "standalone MinIO (Deployment minio) exists")

	began := time.Now()
	c.node("add", "worker-3", "--role", "worker")
	o.waitDone(journal.ActionScaleMinio, 1)
	t.Logf("six replicas were healthy %s after the third node was added", time.Since(began))
	if is := c.minioReplicas(); is != "6, 6 ready" {
		t.Errorf("it has %s", is)
	}
	o.waitMinio("6 of 6 replicas run", "ha-minio is healthy", "  worker-1: ", "  worker-2: ", "  worker-3: ")
	t.Log(o.mustEkco("status", "--component", "minio"))
	if wide := o.mustEkco("status", "-o", "wide"); !strings.Contains(wide, "  ha-minio is healthy") {
		t.Errorf("wide it says\n%s", wide)
	}

	c.scaleMinio(4)
	o.waitDone(journal.ActionScaleMinio, 2)
	c.waitMinioReplicas("6, 6 ready")

	// An older EKCO was ended in the middle of its copy.
	c.pointMinio(`{"doesnotexist":"doesnotexist"}`)
	o.waitDone(journal.ActionRepairMinio, 1)
	c.waitMinioSelector(`{"app":"minio"}`)
	did := steady.Stop()
	if did.Acknowledged == 0 {
		t.Errorf("the client did %+v", did)
	}
	m.eventually("the proxy leads to the single one", func() (bool, string) {
		return probe(t.Context(), "http://"+k.proxy.Address()+"/minio/health/ready"), ""
	})
	// A single server is asked once: no other can know better.
	for _, wrong := range steady.Audit(k.proxy.Address()) {
		t.Error(wrong)
	}
	t.Logf("the client did %+v", did)

	// kURL's installer works.
	c.pointMinio(`{"app":"does-not-exist"}`)
	o.waitMinio("Service minio selects nowhere, for the installer")
	c.scaleMinio(5)
	o.waitMinio("Service minio selects nowhere, for the installer; 5 of 5 replicas run, and it should have 6")
	if requests := o.ended(journal.ActionScaleMinio); len(requests) != 2 {
		t.Errorf("while the installer works it was scaled: %v", requests)
	}
	c.waitMinioSelector(`{"app":"does-not-exist"}`)
	c.scaleMinio(6)
	o.waitMinio("6 of 6 replicas run")

	// It was ended after it had deleted the Deployment.
	if err := c.client.AppsV1().Deployments(minioNamespace).Delete(t.Context(), "minio", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.pointMinio(`{"doesnotexist":"doesnotexist"}`)
	o.waitDone(journal.ActionRepairMinio, 2)
	c.waitMinioSelector(`{"app":"ha-minio"}`)
	o.waitMinio("HA", "Service minio selects ha-minio")
	m.eventually("the proxy leads to the replicas", func() (bool, string) {
		return probe(t.Context(), "http://"+k.proxy.Address()+"/minio/health/cluster"), ""
	})
	c.setMinioSecret(miniotest.SecretKey)
}

// removesMinio matches the deletion of a replica's claim or of its pod.
func removesMinio(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/namespaces/"+minioNamespace+"/"+resource+"/")
	}
}

// spreadAcrossAKill: only a real MinIO shows that a moved replica's data is on its new volume before the next
// replica moves, and that clients lose nothing. Only a real scheduler and controller place the replica.
func spreadAcrossAKill(m *minioCluster) {
	t, c, k := m.t, m.c, m.k
	c.waitMinioReplicas("6, 6 ready")
	const objects = 200
	fillBucket(t, k.proxy.Address(), "data", objects)
	fillBucket(t, k.proxy.Address(), "busy", 0)
	steady := miniotest.StartSteady(t, k.proxy.Address(), "busy", clientRate)
	claims := c.minioClaims()
	if on := c.minioOn(); !slices.Equal(slices.Sorted(maps.Values(on)), []int{2, 2, 2}) {
		t.Fatalf("they are on %v", on)
	}
	m.installEKCO(nil)
	o := m.o

	// Killed between the claim and the pod.
	claimed := m.g.holdNth(0, true, removesMinio("persistentvolumeclaims"))
	running := o.startReady()
	c.node("add", "worker-4", "--role", "worker")
	c.node("add", "worker-5", "--role", "worker")
	claimed.awaitWithin(t, await.HangTimeout)
	running.Kill()
	t.Log(o.mustEkco("status", "--component", "minio"))
	next := m.g.holdAll(removesMinio("persistentvolumeclaims"))
	began := time.Now()
	o.startReady()
	next.awaitWithin(t, await.HangTimeout) // the end of one move, and the begin of another
	t.Logf("the first replica was restored, and the second began to move, %s after EKCO was started again", time.Since(began))
	moved := k.moved(claims)
	if len(moved) != 1 {
		t.Fatalf("when the second replica is to move, %v have moved", moved)
	}
	if n := k.objects(moved[0], "data"); n != objects {
		t.Errorf("when the second replica is to move, the first, ha-minio-%d, has %d of %d objects", moved[0], n, objects)
	}
	next.pass()
	m.eventually("they are spread evenly, and all are ready", func() (bool, string) {
		on, is := c.minioOn(), c.minioReplicas()
		return slices.Equal(slices.Sorted(maps.Values(on)), []int{1, 1, 1, 1, 2}) && is == "6, 6 ready", fmt.Sprint(on, is)
	})
	o.waitDone(journal.ActionMoveMinio, 2)
	did := steady.Stop()
	t.Logf("the client did %+v", did)
	m.audit(steady)
	if all := k.moved(claims); len(all) != 2 {
		t.Errorf("moved have %v", all)
	}
	t.Log(o.mustEkco("history", "--component", "minio", "-o", "tree"))
}

// claimOf is the name of the nth replica's claim.
func claimOf(n int) string { return fmt.Sprint("minio-data-ha-minio-", n) }

// moved returns the replicas that have other claims than these.
func (k *minioKubelet) moved(claims map[string]types.UID) (moved []int) {
	k.t.Helper()
	now := k.c.minioClaims()
	for n := range 6 {
		if name := claimOf(n); now[name] != claims[name] {
			moved = append(moved, n)
		}
	}
	return moved
}

// restoredAfterAPurge: only real components show that the pod of a lost node waits for its local volume,
// that Kubernetes makes it another one, and that MinIO fills that.
func restoredAfterAPurge(m *minioCluster) {
	t, c, k := m.t, m.c, m.k
	m.installEKCO(nil)
	o := m.o
	o.startReady()
	const bucket, objects = "kept", 100
	fillBucket(t, k.proxy.Address(), bucket, objects)
	lost, pod, n := m.alone()
	claim := c.minioClaims()[claimOf(n)]
	m.c.node("lose", lost, "--wait", await.HangTimeout.String())
	began := time.Now()
	m.seldom("its pod is freed, and waits for its volume", func() (bool, string) {
		history := o.mustEkco("history", "--component", "minio")
		return strings.Contains(history, fmt.Sprint(n, " (lacks its volume)")), history
	})
	o.mustEkco("purge-node", lost, "--yes")
	o.waitDone(journal.ActionMoveMinio, 1)
	t.Logf("its data was restored %s after its node was lost", time.Since(began))
	if now := c.minioClaims()[claimOf(n)]; now == claim {
		t.Errorf("%s has its former claim", pod)
	}
	if have := k.objects(n, bucket); have != objects {
		t.Errorf("%s has %d of %d objects", pod, have, objects)
	}
	c.waitMinioReplicas("6, 6 ready")
	o.waitMinio("6 of 6 replicas run", "ha-minio is healthy")
	t.Log(o.mustEkco("history", "--component", "minio", "-o", "tree"))
}

// alone returns a node that runs exactly one replica, with the replica's pod and number.
func (m *minioCluster) alone() (node, pod string, n int) {
	m.t.Helper()
	on := m.c.minioOn()
	for _, one := range m.c.minioPods("app=ha-minio") {
		if n, is := ordinal(one.Name); is && on[one.Spec.NodeName] == 1 {
			return one.Spec.NodeName, one.Name, n
		}
	}
	m.t.Fatalf("the replicas are on %v", on)
	return "", "", 0
}
