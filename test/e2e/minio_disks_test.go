package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/journal"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// full has somebody else use all that disks have left.
func full(disks ...*miniotest.Disk) {
	for _, disk := range disks {
		disk.Fill()
	}
}

func emptied(disks ...*miniotest.Disk) {
	for _, disk := range disks {
		disk.Empty()
	}
}

// much fills the single MinIO with so many objects of 1 MiB.
func (m *migration) much(objects int) {
	m.t.Helper()
	clients := m.clients()
	clients.bucket("much", minio.MakeBucketOptions{})
	for i := range objects {
		clients.put("much", fmt.Sprint("object ", i), strings.Repeat("0123456789abcdef", 1<<16), minio.PutObjectOptions{})
	}
}

// testAMigrationOfMinIOOutlivesFullDisksOnEitherSide: where the copy finds no room it holds,
// also if somebody goes past that, with clients at the single MinIO all the time. That
// nothing can be written to the single one does not keep what it has from being moved.
func testAMigrationOfMinIOOutlivesFullDisksOnEitherSide(t *testing.T) {
	m := newMigrationOn(t, minioDisks{single: 256, replica: 96}, map[string]string{"minio_keep_source": "1s", "minio_copy_bandwidth": "2Mi"}, "worker-4")
	steady := m.few()
	m.much(24) // it takes 12 s
	_, node := m.singlePod()
	m.c.kubectl("cordon", node) // so that it waits before the switch; the other three are ready

	m.o.startReady()
	m.waitPlace("step started copy")
	full(m.k.targets...)
	action := m.waitHeld("MinioRoom", "the highly available MinIO has room for 0 bytes")
	failed := len(m.failures("copy"))
	m.o.mustEkco("retry", action, "--force", "--reason", "the disks grow")
	m.waitFailed("copy", failed+1, "no room")
	if leads := m.leads(); leads != leadsToSingle {
		t.Errorf("with the highly available MinIO full, Service minio leads to %s", leads)
	}
	if did := steady.Did(); did.Failed > 0 || did.Outage > 15*time.Second {
		t.Errorf("until there is room, the client did %+v", did)
	}
	emptied(m.k.targets...)
	m.o.mustEkco("retry", action, "--reason", "there is room")

	m.waitHeld("MinioSuccessor", node+" is cordoned")
	full(m.k.source)
	before := steady.Did()
	eventually(t, patience, "nothing can be written", func() (bool, string) {
		did := steady.Did()
		return did.Failed > before.Failed, fmt.Sprintf("%+v", did)
	})
	t.Logf("with its disk full the single MinIO answers %s", steady.Did().Failure)
	m.c.kubectl("uncordon", node)
	m.waitSwitched(0)
	m.o.waitDone(journal.ActionMigrateMinio, 1)
	m.stopped(steady)
	t.Log(m.story())
}

// singlePod is the pod of the single MinIO, and its node.
func (m *migration) singlePod() (pod, node string) {
	m.t.Helper()
	pods := m.c.minioPods("app=minio")
	if len(pods) != 1 {
		m.t.Fatalf("the single MinIO has %d pods", len(pods))
	}
	return pods[0].Name, pods[0].Spec.NodeName
}

// failures are the errors with which a step has failed, in order.
func (m *migration) failures(step string) (errors []string) {
	m.t.Helper()
	for _, event := range m.o.events("--component", "minio", "--type", string(journal.TypeStepFailed)) {
		if failed := decode[*journal.StepFailed](m.t, event); failed.Step == step {
			errors = append(errors, failed.Error)
		}
	}
	return errors
}

// waitFailed waits until a step has failed so often, the last time with that in its error.
func (m *migration) waitFailed(step string, times int, with string) {
	m.t.Helper()
	seldom(m.t, step+" fails: "+with, func() (bool, string) {
		failed := m.failures(step)
		return len(failed) >= times && strings.Contains(failed[len(failed)-1], with), strings.Join(failed, "\n")
	})
}
