package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// waitServed waits until clients are answered.
func (m *minioCluster) waitServed() {
	m.t.Helper()
	m.eventually("Service minio selects a MinIO that serves", func() (bool, string) {
		return probe(m.t.Context(), "http://"+m.k.proxy.Address()+"/minio/health/ready"), ""
	})
}

// clients are the contents as clients of Service minio see them.
func (m *minioCluster) clients() contents {
	m.t.Helper()
	return contentsOf(m.t, m.k.programs, map[string]string{"clients": m.k.proxy.Address()})["clients"]
}

// sides are the contents of the single MinIO, and of the highly available one.
func (m *minioCluster) sides() (source, target contents) {
	m.t.Helper()
	pods := m.c.minioPods("app=minio")
	if len(pods) != 1 {
		m.t.Fatalf("the single MinIO has %d pods", len(pods))
	}
	both := contentsOf(m.t, m.k.programs, map[string]string{"source": pods[0].Status.PodIP + ":9000", "target": m.k.address(0)})
	return both["source"], both["target"]
}

// waitSwitched waits until Service minio leads to the highly available MinIO, which has so many
// objects then.
func (m *minioCluster) waitSwitched(objects int) {
	m.t.Helper()
	limit := await.HangTimeout + time.Duration(objects)*100*time.Millisecond
	eventually(m.t, limit, "Service minio selects ha-minio", func() (bool, string) {
		leads := m.leads()
		return leads == `{"app":"ha-minio"}`, leads
	})
}

// wantHandedOver fails unless nothing of the single MinIO is left.
func (m *minioCluster) wantHandedOver() {
	m.t.Helper()
	m.eventually("nothing of the single MinIO is left", func() (bool, string) {
		deployments, err := m.c.client.AppsV1().Deployments(minioNamespace).List(m.t.Context(), metav1.ListOptions{})
		if err != nil {
			m.t.Fatal(err)
		}
		pods, claims := m.c.minioPods("app=minio"), m.c.minioClaims()
		_, claimed := claims["minio-pv-claim"]
		return len(deployments.Items)+len(pods) == 0 && !claimed, fmt.Sprintf("%d Deployments, %d pods, claims %v", len(deployments.Items), len(pods), claims)
	})
}

// audit waits until each object is as MinIO acknowledged it to the stopped client. After servers were down or
// disks full, one server may for a while miss objects that four of six drives have and all others serve. A
// lost object stays missing.
func (m *minioCluster) audit(steady *miniotest.Steady) {
	m.t.Helper()
	asked := 0
	m.seldom("each object is as acknowledged", func() (bool, string) {
		wrong := steady.Audit(m.k.proxy.Address())
		if asked++; asked == 1 && len(wrong) > 0 {
			m.t.Logf("at first %d objects are not as acknowledged, such as: %s", len(wrong), wrong[0])
		}
		return len(wrong) == 0, strings.Join(wrong, "\n")
	})
}

// endsSingle matches the deletion of the single MinIO's Deployment.
func endsSingle(r *http.Request) bool {
	return r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/deployments/minio")
}

// story returns EKCO's history of MinIO.
func (m *minioCluster) story() string {
	m.t.Helper()
	return m.o.mustEkco("history", "--component", "minio", "-o", "tree")
}

// objectsVariable is how many objects of 5 KiB are migrated, for who measures.
const objectsVariable = "EKCO_MINIO_OBJECTS"

func objectsToMigrate(t *testing.T) int {
	t.Helper()
	text := cmp.Or(os.Getenv(objectsVariable), "100")
	objects, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", objectsVariable, err)
	}
	return objects
}

// millisVariable is how many thousandths of a CPU EKCO has while it migrates, for who measures, as
// root.
const millisVariable = "EKCO_MINIO_MILLIS"

// limited returns what puts a process that is started later under the limit that is asked for, and
// says what it got in the end.
func limited(t *testing.T) (limit func(pid int)) {
	t.Helper()
	text := os.Getenv(millisVariable)
	if text == "" {
		return func(int) {}
	}
	millis, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", millisVariable, err)
	}
	group := child.Throttled(t, millis)
	return func(pid int) {
		if err := child.Join(group, pid); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			used, err := child.UsedCPU(group)
			t.Logf("with %dm of a CPU, %v:\n%s", millis, err, used)
		})
	}
}

// migrationWhileClientsWrite: only real servers show that the highly available one takes all kinds of
// objects, versions, settings and users, judged by mc, and that clients lose nothing.
func migrationWhileClientsWrite(m *minioCluster) {
	t := m.t
	m.installMinio()
	before, objects := m.clients(), objectsToMigrate(t)
	before.fill(objects)
	before.bucket("bucket", minio.MakeBucketOptions{})
	before.bucket("account", minio.MakeBucketOptions{})
	steady := miniotest.StartSteady(t, m.k.proxy.Address(), "bucket", clientRate)
	account := miniotest.StartSteadyAs(t, m.k.proxy.Address(), "account", 5, accountKey, accountSecret)
	ends := m.g.holdAll(endsSingle)
	m.installEKCO(nil)

	limit := limited(t)
	began := time.Now()
	operator := m.o.startReady()
	limit(operator.PID())
	m.waitSwitched(objects)
	t.Logf("Service minio was switched %s after EKCO's start", time.Since(began))
	m.o.waitMinio("HA", "Service minio selects ha-minio")
	ends.awaitWithin(t, await.HangTimeout)
	did, accountDid := steady.Stop(), account.Stop()
	t.Logf("the client did %+v, that with a service account's key %+v", did, accountDid)
	if accountDid.Acknowledged == 0 {
		t.Error("the client with a service account's key wrote nothing")
	}
	source, target := m.sides()
	source.same(target, "bucket", "account")
	m.audit(steady)
	m.audit(account)
	ends.pass()
	m.o.waitDone(journal.ActionMigrateMinio, 1)
	m.wantHandedOver()
	m.audit(steady)
	m.mayStillRead()
	used, err := child.MemoryOf(operator.PID())
	if err != nil || used.Peak > 128<<20 {
		t.Errorf("EKCO's memory was %d bytes at most, %v", used.Peak, err)
	}
	t.Logf("EKCO's memory was %d MiB at most", used.Peak>>20)
	t.Log(m.story())
}

// mayStillRead fails unless a service account may do what it may, and no more.
func (m *minioCluster) mayStillRead() {
	m.t.Helper()
	client, err := minio.New(m.k.proxy.Address(), &minio.Options{Creds: credentials.NewStaticV4(accountKey, accountSecret, "")})
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := client.StatObject(m.t.Context(), "versioned", "overwritten", minio.StatObjectOptions{}); err != nil {
		m.t.Errorf("the service account may not read what it may: %v", err)
	}
	if _, err := client.StatObject(m.t.Context(), "plain", "empty", minio.StatObjectOptions{}); minio.ToErrorResponse(err).StatusCode != http.StatusForbidden {
		m.t.Errorf("the service account may read what it may not: %v", err)
	}
}
