package e2e

import (
	"cmp"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/child"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// migration is a cluster with a single MinIO that an EKCO, once started, moves to six servers.
type migration struct {
	t *testing.T
	c *cluster
	g *gate
	o *operator
	k *minioKubelet
	// had is what clients had stored and were allowed before, as the judge tells it.
	had string
}

// newMigration starts a cluster with three workers, and more, and the single MinIO, and an EKCO
// that is not started yet.
func newMigration(t *testing.T, keys map[string]string, more ...string) *migration {
	t.Helper()
	return newMigrationOn(t, minioDisks{}, keys, more...)
}

// newMigrationOn is [newMigration] with disks.
func newMigrationOn(t *testing.T, disks minioDisks, keys map[string]string, more ...string) *migration {
	t.Helper()
	c, g, o, k := installMinioOn(t, disks, keys, append([]string{"worker-1", "worker-2", "worker-3"}, more...)...)
	m := &migration{t: t, c: c, g: g, o: o, k: k}
	m.waitServed()
	return m
}

// waitServed waits until clients are answered.
func (m *migration) waitServed() {
	m.t.Helper()
	eventually(m.t, patience, "Service minio leads to a MinIO that serves", func() (bool, string) {
		return probe(m.t.Context(), "http://"+m.k.proxy.Address()+"/minio/health/ready"), ""
	})
}

// clients are the contents as clients of Service minio see them.
func (m *migration) clients() contents {
	m.t.Helper()
	return contentsOf(m.t, m.k.programs, map[string]string{"clients": m.k.proxy.Address()})["clients"]
}

// sides are the contents of the single MinIO, and of the highly available one.
func (m *migration) sides() (source, target contents) {
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
func (m *migration) waitSwitched(objects int) {
	m.t.Helper()
	limit := patience + time.Duration(objects)*100*time.Millisecond
	eventually(m.t, limit, "Service minio leads to ha-minio", func() (bool, string) {
		leads := m.leads()
		return leads == `{"app":"ha-minio"}`, leads
	})
}

// wantHandedOver fails unless nothing of the single MinIO is left.
func (m *migration) wantHandedOver() {
	m.t.Helper()
	seldom(m.t, "nothing of the single MinIO is left", func() (bool, string) {
		left := m.c.kubectl("get", "deployments,pods,persistentvolumeclaims", "-n", minioNamespace, "-o", "name")
		for line := range strings.Lines(left) {
			if !strings.Contains(line, "ha-minio") {
				return false, left
			}
		}
		return true, ""
	})
}

// audit fails unless a client that was stopped finds all as it wrote it.
func (m *migration) audit(steady *miniotest.Steady) {
	m.t.Helper()
	for _, wrong := range steady.Audit(m.k.proxy.Address()) {
		m.t.Error(wrong)
	}
}

// endsSingle matches the deletion of the single MinIO's Deployment.
func endsSingle(r *http.Request) bool {
	return r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/deployments/minio")
}

// storyOf is what EKCO tells of the migration.
func (m *migration) story() string {
	m.t.Helper()
	return m.o.mustEkco("history", "--component", "minio", "-o", "tree")
}

// objectsVariable is how many objects of 5 KiB are migrated, for who measures.
const objectsVariable = "EKCO_MINIO_OBJECTS"

func objectsToMigrate(t *testing.T) int {
	t.Helper()
	text := cmp.Or(os.Getenv(objectsVariable), "400")
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

func testASingleMinIOBecomesSixWhileClientsWriteAndNothingIsLost(t *testing.T) {
	// Slow enough for its progress to be seen.
	m := newMigration(t, map[string]string{"minio_keep_source": "5s", "minio_copy_bandwidth": "4Mi"})
	before, objects := m.clients(), objectsToMigrate(t)
	before.fill(objects)
	before.bucket("bucket", minio.MakeBucketOptions{})
	before.bucket("account", minio.MakeBucketOptions{})
	steady := miniotest.StartSteady(t, m.k.proxy.Address(), "bucket", 20)
	account := miniotest.StartSteadyAs(t, m.k.proxy.Address(), "account", 5, accountKey, accountSecret)
	ends := m.g.holdAll(endsSingle)

	limit := limited(t)
	began := time.Now()
	operator := m.o.startReady()
	limit(operator.PID())
	m.waitProgress()
	m.waitSwitched(objects)
	t.Logf("Service minio was switched %s after EKCO's start", time.Since(began))
	m.o.waitMinio("HA", "Service minio leads to ha-minio")
	ends.await(t)
	did, accountDid := steady.Stop(), account.Stop()
	t.Logf("the client did %+v, that with a service account's key %+v", did, accountDid)
	if did.Outage > time.Minute || accountDid.Acknowledged == 0 {
		t.Error("clients were kept out for longer than the switch may take")
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

// waitProgress waits until the status tells how far the copy is.
func (m *migration) waitProgress() {
	m.t.Helper()
	eventually(m.t, patience, "the status tells how far the copy is", func() (bool, string) {
		says := m.o.mustEkco("status", "--component", "minio", "-o", "wide")
		for line := range strings.Lines(says) {
			if strings.Contains(line, "copy: ") && strings.Contains(line, " objects, ") && strings.Contains(line, " left") {
				m.t.Log(says)
				return true, ""
			}
		}
		return false, says
	})
}

// mayStillRead fails unless a service account may do what it may, and no more.
func (m *migration) mayStillRead() {
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
