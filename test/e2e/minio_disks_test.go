package e2e

import (
	"fmt"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
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
func (m *minioCluster) much(objects int) {
	m.t.Helper()
	clients := m.clients()
	clients.bucket("much", minio.MakeBucketOptions{})
	for i := range objects {
		clients.put("much", fmt.Sprint("object ", i), strings.Repeat("0123456789abcdef", 1<<16), minio.PutObjectOptions{})
	}
}

// migrationWithFullDisks: only real servers show what a lost quorum and a full disk do to a copy. Without
// room the copy is held, even if a person forces it, and clients stay at the single MinIO. A full disk of the
// single MinIO does not stop the migration.
func migrationWithFullDisks(m *minioCluster) {
	m.installMinio()
	steady := m.few()
	m.much(24)
	_, node := m.singlePod()
	m.c.cordon(node, true)                                           // a cordoned node holds the migration before the switch; the other three are ready
	m.installEKCO(map[string]string{"minio_copy_bandwidth": "32Ki"}) // it would take 12 minutes

	m.o.startReady()
	m.waitPlace("step started copy")
	seldom(m.t, "the status shows how far the copy is", func() (bool, string) {
		says := m.o.mustEkco("status", "--component", "minio", "-o", "wide")
		for line := range strings.Lines(says) {
			if strings.Contains(line, "copy: ") && strings.Contains(line, " objects, ") && strings.Contains(line, " left") {
				return true, ""
			}
		}
		return false, says
	})
	m.k.breakDown(0, 1, 2)
	m.o.waitMinio("Service minio selects minio", "ha-minio is not healthy: too few of its drives are there to write")
	m.k.breakDown()
	m.o.waitMinio("ha-minio is healthy")
	full(m.k.targets...)
	action := m.waitHeld("MinioRoom", "ha-minio has room for 0 bytes")
	failed := len(m.failures("copy"))
	m.o.mustEkco("retry", action, "--force", "--reason", "the disks grow")
	m.waitFailed("copy", failed+1, "no free space")
	if leads := m.leads(); leads != leadsToSingle {
		m.t.Errorf("with the highly available MinIO full, Service minio selects %s", leads)
	}
	if did := steady.Did(); did.Failed > 0 {
		m.t.Errorf("until there is room, the client did %+v", did)
	}
	emptied(m.k.targets...)
	m.o.running.Stop(await.HangTimeout)
	m.reconfigure(nil)
	m.o.startReady()
	m.o.mustEkco("retry", action, "--reason", "there is room")

	m.waitHeld("MinioSuccessor", node+" is cordoned")
	full(m.k.source)
	before := steady.Did()
	m.eventually("nothing can be written", func() (bool, string) {
		did := steady.Did()
		return did.Failed > before.Failed, fmt.Sprintf("%+v", did)
	})
	m.t.Logf("with its disk full the single MinIO answers %s", steady.Did().Failure)
	m.c.cordon(node, false)
	m.waitSwitched(0)
	m.o.waitDone(journal.ActionMigrateMinio, 1)
	m.stopped(steady)
	emptied(m.k.source)
	m.t.Log(m.story())
}

// singlePod is the pod of the single MinIO, and its node.
func (m *minioCluster) singlePod() (pod, node string) {
	m.t.Helper()
	pods := m.c.minioPods("app=minio")
	if len(pods) != 1 {
		m.t.Fatalf("the single MinIO has %d pods", len(pods))
	}
	return pods[0].Name, pods[0].Spec.NodeName
}

// failures are the errors with which a step has failed, in order.
func (m *minioCluster) failures(step string) (errors []string) {
	m.t.Helper()
	for _, event := range m.o.events("--component", "minio", "--type", string(journal.TypeStepFailed)) {
		if failed := decode[*journal.StepFailed](m.t, event); failed.Step == step {
			errors = append(errors, failed.Error)
		}
	}
	return errors
}

// waitFailed waits until a step has failed so often, the last time with that in its error.
func (m *minioCluster) waitFailed(step string, times int, with string) {
	m.t.Helper()
	m.seldom(step+" fails: "+with, func() (bool, string) {
		failed := m.failures(step)
		return len(failed) >= times && strings.Contains(failed[len(failed)-1], with), strings.Join(failed, "\n")
	})
}
