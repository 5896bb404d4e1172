package nodetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
)

// claim is a volume on the node's own disk, as a local storage class makes it; the path is one that the
// disk of a node here has.
const claim = `
apiVersion: v1
kind: PersistentVolume
metadata:
  name: ekco-journal
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  local: {path: /var/lib/ekco/claim}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [real-1]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: ekco-journal
  namespace: kurl
spec:
  storageClassName: local
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`

// keepsItsJournalOnAClaim: EKCO begins a new journal there, in safe mode, because its own one is gone from the node. The
// new journal outlives the pod, too.
func keepsItsJournalOnAClaim(t *testing.T, w *world) {
	disk := w.node.Disk("var/lib/ekco/claim")
	if err := os.MkdirAll(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	w.applyText(t, claim)
	before := w.operator(t)
	w.Kubectl(t, "--namespace", "kurl", "patch", "deployment", "ekc-operator", "--patch",
		`{"spec": {"template": {"spec": {"volumes": [{"name": "journal", "hostPath": null, "persistentVolumeClaim": {"claimName": "ekco-journal"}}]}}}}`)
	var pod string
	await.Until(t, await.HangTimeout, "EKCO's pod is replaced", func() (bool, string) {
		pod = w.operator(t)
		return pod != before, w.Kubectl(t, "--namespace", "kurl", "describe", "pods")
	})
	w.Kubectl(t, "--namespace", "kurl", "exec", pod, "--", "ekco", "journal", "accept", "--yes")
	w.Kubectl(t, "--namespace", "kurl", "exec", pod, "--", "ekco", "pause", "--for", "1h", "--reason", "kept on the claim")
	if _, err := os.Stat(filepath.Join(disk, "journal.db")); err != nil {
		t.Error(err)
	}
	w.Kubectl(t, "--namespace", "kurl", "delete", "pod", pod)
	if next := w.operator(t); next == pod {
		t.Fatalf("pod %s was not replaced", pod)
	}
	var status struct {
		Pauses json.RawMessage `json:"pauses"`
	}
	if err := json.Unmarshal([]byte(w.mustEkco(t, "status", "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(status.Pauses), "kept on the claim") {
		t.Errorf("the new pod does not know of the pause: %s", status.Pauses)
	}
}

// staysWithinItsMemory: the kernel kept count, of the commands in the pod as well.
func staysWithinItsMemory(t *testing.T, w *world) {
	const list = `cd /sys/fs/cgroup; cat memory.max memory.peak 2>/dev/null || cat memory/memory.limit_in_bytes memory/memory.max_usage_in_bytes`
	var limit, peak, restarts int64
	read := w.Kubectl(t, "--namespace", "kurl", "exec", w.operator(t), "--", "bash", "-c", list)
	if _, err := fmt.Sscan(read, &limit, &peak); err != nil {
		t.Fatalf("%v: %q", err, read)
	}
	counted := w.Kubectl(t, "--namespace", "kurl", "get", "pods", "-l", "app=ekc-operator", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if _, err := fmt.Sscan(counted, &restarts); err != nil {
		t.Fatalf("%v: %q", err, counted)
	}
	t.Logf("of %d MiB at most %d MiB were used, cache included; restarted %d times", limit>>20, peak>>20, restarts)
	if limit != 128<<20 || peak == 0 || restarts != 0 { // out of memory it would have been killed and restarted
		t.Errorf("limit %d, peak %d bytes, %d restarts", limit, peak, restarts)
	}
}
