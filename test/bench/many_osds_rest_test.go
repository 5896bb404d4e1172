package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/kurl"
)

// What EKCO may take on 1,000 nodes with 500 OSDs.
const (
	// mostMemory is what 1,000 nodes without storage may take.
	mostMemory = 64
	// soonAfterOSD is how soon Ceph is asked once there is another OSD's Deployment.
	soonAfterOSD = 5 * time.Second
	restMinutes  = 3
)

// Benchmark1000Nodes500OSDs measures an operator on a cluster of 1,000 workers, of which 250 have
// two OSDs each: what it asks, writes and keeps at rest, and how soon it asks Ceph when there is
// another OSD. It fails where that is more than EKCO may take.
func Benchmark1000Nodes500OSDs(b *testing.B) {
	const nodes, hosts = 1000, 250
	ceph := newManyOSDs(b, workers(0, hosts))
	c := startPlane(b, "--primaries", "3", "--workers", "0", "--scale", "--exec-handler", ceph.Program)
	c.workers = nodes
	c.fill(b)
	installManyOSDs(b, c, hosts)
	for b.Loop() {
		logLoad(b)
		o := install(b, c.kubeconfig(b, nil), map[string]string{
			"maintain_rook_storage_nodes": "true", "ceph_object_store": "rook-ceph-store",
			"rook_priority_class": `""`, // Rook gives its pods one itself
		})
		operator := o.startReady(b)
		o.saysIfFailed(b)
		eventually(b, 5*time.Minute, "all nodes are listed", func() bool {
			listed := c.kubectl(b, "-n", kurl.RookNamespace, "get", "cephcluster", "rook-ceph", "-o", "jsonpath={.spec.storage.nodes[*].name}")
			return len(strings.Fields(listed)) == nodes+3
		})
		letPass(b, time.Minute) // what follows from that is over
		restWithOSDs(b, c, o, ceph)
		anotherOSD(b, c, o, ceph, hosts)
		used := memoryOf(b, operator)
		operator.Stop(grace)
		b.ReportMetric(mebibytes(used.Resident), "rest-MiB")
		b.ReportMetric(mebibytes(used.Anonymous), "rest-anonymous-MiB")
		b.ReportMetric(mebibytes(used.Peak), "peak-MiB")
		if peak := mebibytes(used.Peak); peak > mostMemory {
			b.Errorf("EKCO had %.0f MiB, and may have %d", peak, mostMemory)
		}
	}
}

// installManyOSDs makes what Rook has where everything is as it shall be but for the list of
// nodes.
func installManyOSDs(b *testing.B, c *cluster, hosts int) {
	b.Helper()
	c.createRookCRDs(b)
	c.applyObject(b, kurl.RookStorage("v1.10.6", "primary-1"))
	three := `{"replicated":{"size":3}}`
	for object, spec := range map[string]string{
		"cephcluster/rook-ceph":           `{"mon":{"count":3},"mgr":{"count":2}}`,
		"cephblockpool/replicapool":       three,
		"cephfilesystem/rook-shared-fs":   `{"metadataPool":` + three + `,"dataPools":[` + three + `]}`,
		"cephobjectstore/rook-ceph-store": `{"metadataPool":` + three + `,"dataPool":` + three + `}`,
	} {
		c.kubectl(b, "-n", kurl.RookNamespace, "patch", object, "--type=merge", "--patch", `{"spec":`+spec+`}`)
	}
	items := []any{}
	for i, host := range workers(0, hosts) {
		items = append(items, kurl.OSDDeployment(host, 2*i), kurl.OSDDeployment(host, 2*i+1))
	}
	c.applyObject(b, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	eventually(b, 10*time.Minute, "all OSDs run", func() bool {
		ready := c.kubectl(b, "-n", kurl.RookNamespace, "get", "deployments", "-l", "app=rook-ceph-osd", "-o", "jsonpath={.items[*].status.availableReplicas}")
		return len(strings.Fields(ready)) == 2*hosts
	})
}

// restWithOSDs measures some minutes in which nothing happens.
func restWithOSDs(b *testing.B, c *cluster, o *installation, ceph *manyOSDs) {
	b.Helper()
	before, began := o.scrape(b), time.Now()
	letPass(b, restMinutes*time.Minute)
	after, asked := o.scrape(b), ceph.asked(b, began)
	requests, which := grown(before, after, "ekco_kubernetes_requests_total")
	b.Logf("requests in %d minutes: %s", restMinutes, strings.Join(which, ", "))
	for _, request := range which { // of which an exec is a question, and the only one that switches protocols
		if !strings.Contains(request, `verb="get"`) && !strings.Contains(request, `verb="list"`) && !strings.Contains(request, `verb="watch"`) && !strings.Contains(request, `code="101",resource="pods"`) {
			b.Errorf("at rest EKCO wrote %s", request)
		}
	}
	if events, _ := grown(before, after, "ekco_journal_sequence"); events != 0 || after["ekco_journal_sequence"] == 0 {
		b.Errorf("at rest %g events were written, of %g in all", events, after["ekco_journal_sequence"])
	}
	if len(asked["osd tree"]) == 0 {
		b.Errorf("Ceph was not asked: %v", asked)
	}
	for question, times := range asked {
		if len(times) > restMinutes {
			b.Errorf("in %d minutes Ceph was asked %s %d times", restMinutes, question, len(times))
		}
	}
	b.ReportMetric(requests/restMinutes, "requests/min")
	b.ReportMetric(float64(len(asked["osd tree"]))/restMinutes, "looks-at-ceph/min")
}

// anotherOSD measures from the Deployment of another OSD to the first question after it, and to
// the record of its host.
func anotherOSD(b *testing.B, c *cluster, o *installation, ceph *manyOSDs, hosts int) {
	b.Helper()
	host := workers(hosts, 1)[0]
	id := ceph.next
	ceph.add(host, 1)
	ceph.write(b)
	began := time.Now()
	c.applyObject(b, kurl.OSDDeployment(host, id))
	eventually(b, time.Minute, "EKCO knows of the host", func() bool {
		for _, event := range o.events(b, journal.TypeThingObserved) {
			if event.Time.After(began) && strings.Contains(string(event.Payload), fmt.Sprintf("%q", host)) {
				b.ReportMetric(milli(event.Time.Sub(began)), "osd-to-fact-ms")
				return true
			}
		}
		return false
	})
	asked := ceph.asked(b, began)["osd tree"]
	took := asked[0].Sub(began)
	if took > soonAfterOSD {
		b.Errorf("Ceph was asked %s after there was another OSD", took)
	}
	b.ReportMetric(milli(took), "osd-to-look-ms")
}
