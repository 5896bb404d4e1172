package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// moving is how long the move of a replica may take from its request to its end. EKCO waits
// twice for 30 s in which nothing is healed, and has all data looked at twice, which rests for a
// minute where it is in vain; a pod has 30 s to end, and a server notices its new drive after
// 10 s, and heals it: on a busy machine all that is more than [patience].
const moving = 2 * patience

// installMinio starts a cluster with these workers alone, which are worker-1 to worker-6, and
// a gate, MinIO as kURL leaves it, whose pods are real servers, and an EKCO that shall look
// after it.
func installMinio(t *testing.T, workers ...string) (*cluster, *gate, *operator, *minioKubelet) {
	t.Helper()
	return installMinioWith(t, nil, workers...)
}

// installMinioWith is [installMinio] with more settings.
func installMinioWith(t *testing.T, more map[string]string, workers ...string) (*cluster, *gate, *operator, *minioKubelet) {
	t.Helper()
	return installMinioOn(t, minioDisks{}, more, workers...)
}

// installMinioOn is [installMinioWith] with disks.
func installMinioOn(t *testing.T, disks minioDisks, more map[string]string, workers ...string) (*cluster, *gate, *operator, *minioKubelet) {
	t.Helper()
	keys := map[string]string{"enable_ha_minio": "true", "minio_namespace": minioNamespace, "minio_volume_wait": "3s"}
	maps.Copy(keys, more)
	c, g, o := installGated(t, keys)
	for _, name := range []string{"primary-1", "primary-2", "primary-3", "worker-1", "worker-2", "worker-3"} {
		c.kubectl("delete", "node", name)
	}
	for _, name := range workers {
		c.node("add", name, "--role", "worker")
	}
	k := startMinioKubelet(t, c, disks)
	c.applyMinio()
	c.applyShipped("rbac-minio.yaml")
	return c, g, o, k
}

// applyMinio installs MinIO, with pods that are left to [minioKubelet].
func (c *cluster) applyMinio() {
	c.t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "kurl", "minio.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	const template = "    metadata: {labels: "
	left := strings.ReplaceAll(string(content), template, "    metadata: {annotations: {sim/kubelet: other}, labels: ")
	if strings.Count(string(content), template) != 2 {
		c.t.Fatal("the templates of MinIO's pods are not as they were")
	}
	path := filepath.Join(c.t.TempDir(), "minio.yaml")
	if err := os.WriteFile(path, []byte(left), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.kubectl("apply", "-f", path)
}

// What follows asks the API server itself where it may be asked often: kubectl costs more
// than all that it asks for.

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
	eventually(c.t, patience, "MinIO has "+want, func() (bool, string) {
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
	c.kubectl("scale", "statefulset", "ha-minio", "-n", minioNamespace, fmt.Sprint("--replicas=", replicas))
}

// pointMinio has Service minio lead where the selector says.
func (c *cluster) pointMinio(selector string) {
	c.t.Helper()
	c.kubectl("patch", "service", "minio", "-n", minioNamespace, "--type=json", "-p", `[{"op":"replace","path":"/spec/selector","value":`+selector+`}]`)
}

func (c *cluster) waitMinioSelector(want string) {
	c.t.Helper()
	eventually(c.t, patience, "Service minio leads to "+want, func() (bool, string) {
		is := c.minioLeads()
		return is == want, is
	})
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
	c.kubectl("patch", "secret", "minio-credentials", "-n", minioNamespace, "--type=merge", "-p", fmt.Sprintf(`{"stringData":{"MINIO_SECRET_KEY":%q}}`, key))
}

// handOverMinio has ha-minio be the only one, as after a migration.
func (c *cluster) handOverMinio() {
	c.t.Helper()
	c.kubectl("delete", "deployment", "minio", "-n", minioNamespace)
	c.pointMinio(`{"app":"ha-minio"}`)
}

// s3 is a client of the server or proxy at an address.
func s3(t *testing.T, address string) *minio.Client {
	t.Helper()
	transport := &http.Transport{ResponseHeaderTimeout: time.Minute}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(miniotest.AccessKey, miniotest.SecretKey, ""), Transport: transport, Region: "us-east-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// fillBucket makes a bucket with so many objects.
func fillBucket(t *testing.T, address, bucket string, objects int) {
	t.Helper()
	client := s3(t, address)
	eventually(t, patience, "bucket "+bucket+" is made", func() (bool, string) {
		err := client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{})
		return err == nil, fmt.Sprint(err)
	})
	var all sync.WaitGroup
	for first := range 10 {
		all.Go(func() {
			for i := first; i < objects; i += 10 {
				content := strings.Repeat(fmt.Sprintln(i), 1000)
				if _, err := client.PutObject(t.Context(), bucket, fmt.Sprintf("object %d", i), strings.NewReader(content), int64(len(content)), minio.PutObjectOptions{}); err != nil {
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

// waitDone waits for the nth action of a kind to end, and fails unless all were done.
func (o *operator) waitDone(kind journal.ActionKind, n int) {
	o.t.Helper()
	o.waitDoneWithin(patience, kind, n)
}

// waitDoneWithin is waitDone for what takes several waits.
func (o *operator) waitDoneWithin(limit time.Duration, kind journal.ActionKind, n int) {
	o.t.Helper()
	await.Looking(o.t, time.Second, limit, fmt.Sprintf("%s is done %d times", kind, n), func() (bool, string) {
		ended := o.ended(kind)
		for _, outcome := range ended {
			if outcome != journal.OutcomeDone {
				o.t.Fatalf("of %s ended %v", kind, ended)
			}
		}
		return len(ended) == n, fmt.Sprintf("%v\n%s", ended, o.mustEkco("status", "--component", "minio"))
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

func testMinIOGetsItsReplicasAndItsServiceIsSetRightUnderTheShippedPermissions(t *testing.T) {
	c, _, o, k := installMinio(t, "worker-1", "worker-2")
	c.setMinioSecret("outdated") // so that nothing is migrated
	fillBucket(t, k.proxy.Address(), "bucket", 0)
	steady := miniotest.StartSteady(t, k.proxy.Address(), "bucket", 20)
	o.startReady()
	o.waitMinio("Single", "Service minio leads to minio; 0 of 0 replicas run, and it shall have 6", "Deployment minio, the single one, is there")

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
	eventually(t, patience, "the proxy leads to the single one", func() (bool, string) {
		return probe(t.Context(), "http://"+k.proxy.Address()+"/minio/health/ready"), ""
	})
	for _, wrong := range steady.Audit(k.proxy.Address()) {
		t.Error(wrong)
	}
	t.Logf("the client did %+v", did)

	// kURL's installer works.
	c.pointMinio(`{"app":"does-not-exist"}`)
	o.waitMinio("Service minio leads to nowhere, for the installer")
	c.scaleMinio(5)
	o.waitMinio("Service minio leads to nowhere, for the installer; 5 of 5 replicas run, and it shall have 6")
	if requests := o.ended(journal.ActionScaleMinio); len(requests) != 2 {
		t.Errorf("while the installer works it was scaled: %v", requests)
	}
	c.waitMinioSelector(`{"app":"does-not-exist"}`)
	c.scaleMinio(6)
	o.waitMinio("6 of 6 replicas run")

	// It was ended after it had deleted the Deployment.
	c.kubectl("delete", "deployment", "minio", "-n", minioNamespace)
	c.pointMinio(`{"doesnotexist":"doesnotexist"}`)
	o.waitDone(journal.ActionRepairMinio, 2)
	c.waitMinioSelector(`{"app":"ha-minio"}`)
	o.waitMinio("HA", "Service minio leads to ha-minio")
	eventually(t, patience, "the proxy leads to the replicas", func() (bool, string) {
		return probe(t.Context(), "http://"+k.proxy.Address()+"/minio/health/cluster"), ""
	})
}

// removesMinio matches the deletion of a replica's claim or of its pod.
func removesMinio(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/namespaces/"+minioNamespace+"/"+resource+"/")
	}
}

func testReplicasOfMinIOAreSpreadOneByOneAlsoWhenEKCOIsKilled(t *testing.T) {
	c, g, o, k := installMinio(t, "worker-1", "worker-2")
	c.handOverMinio()
	c.scaleMinio(6)
	c.waitMinioReplicas("6, 6 ready")
	const objects = 200
	fillBucket(t, k.proxy.Address(), "data", objects)
	fillBucket(t, k.proxy.Address(), "bucket", 0)
	steady := miniotest.StartSteady(t, k.proxy.Address(), "bucket", 20)
	claims := c.minioClaims()
	if on := c.minioOn(); on["worker-1"] != 3 || on["worker-2"] != 3 {
		t.Fatalf("they are on %v", on)
	}

	// Killed between the claim and the pod.
	claimed := g.holdNth(0, true, removesMinio("persistentvolumeclaims"))
	running := o.startReady()
	c.node("add", "worker-3", "--role", "worker")
	claimed.awaitWithin(t, moving)
	running.Kill()
	t.Log(o.mustEkco("status", "--component", "minio"))
	next := g.holdAll(removesMinio("persistentvolumeclaims"))
	began := time.Now()
	o.startReady()
	next.awaitWithin(t, moving+patience) // the end of one move, and the begin of another
	t.Logf("the first replica was restored, and the second began to move, %s after EKCO was started again", time.Since(began))
	moved := k.moved(claims)
	if len(moved) != 1 {
		t.Fatalf("when the second replica is to move, %v have moved", moved)
	}
	if n := k.objects(moved[0], "data"); n != objects {
		t.Errorf("when the second replica is to move, the first, ha-minio-%d, has %d of %d objects", moved[0], n, objects)
	}
	next.pass()
	eventually(t, moving, "they are spread evenly, and all are ready", func() (bool, string) {
		on, is := c.minioOn(), c.minioReplicas()
		return on["worker-1"] == 2 && on["worker-2"] == 2 && on["worker-3"] == 2 && is == "6, 6 ready", fmt.Sprint(on, is)
	})
	o.waitDone(journal.ActionMoveMinio, 1)
	did := steady.Stop()
	t.Logf("the client did %+v", did)
	for _, wrong := range steady.Audit(k.proxy.Address()) {
		t.Error(wrong)
	}
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

func testAReplicaOfMinIOOnANodeThatIsPurgedGetsANewVolumeAndItsData(t *testing.T) {
	c, _, o, k := installMinio(t, "worker-1", "worker-2", "worker-3", "worker-4", "worker-5", "worker-6")
	c.handOverMinio()
	o.startReady()
	o.waitDone(journal.ActionScaleMinio, 1)
	const objects = 100
	fillBucket(t, k.address(0), "data", objects)
	pod := c.kubectl("get", "pods", "-n", minioNamespace, "-l", "app=ha-minio", "--field-selector", "spec.nodeName=worker-1", "-o", "jsonpath={.items[*].metadata.name}")
	n, replica := ordinal(pod)
	if !replica {
		t.Fatalf("on worker-1 runs %q", pod)
	}
	claim := c.minioClaims()[claimOf(n)]
	c.node("lose", "worker-1")
	began := time.Now()
	seldom(t, "its pod is freed, and waits for its volume", func() (bool, string) {
		history := o.mustEkco("history", "--component", "minio")
		number := strings.TrimPrefix(pod, "ha-minio-")
		return strings.Contains(history, number+" (lacks its volume)"), history
	})
	o.mustEkco("purge-node", "worker-1", "--yes")
	o.waitDoneWithin(moving, journal.ActionMoveMinio, 1)
	t.Logf("its data was restored %s after its node was lost", time.Since(began))
	if now := c.minioClaims()[claimOf(n)]; now == claim {
		t.Errorf("%s has its former claim", pod)
	}
	if have := k.objects(n, "data"); have != objects {
		t.Errorf("%s has %d of %d objects", pod, have, objects)
	}
	c.waitMinioReplicas("6, 6 ready")
	o.waitMinio("6 of 6 replicas run", "ha-minio is healthy")
	t.Log(o.mustEkco("history", "--component", "minio", "-o", "tree"))
}
