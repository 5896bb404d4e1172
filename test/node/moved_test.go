package nodetest

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/await"
)

// stop takes the power from the node. Its disk stays.
func (n *Node) stop(tb testing.TB) {
	tb.Helper()
	n.machine.off(tb)
	n.machine = nil
}

// TestEKCOsNodeDiesInAPurge: EKCO begins on the second primary with an empty disk, and finishes the purge by what
// is in the API. The first node then comes back with the journal that it had, in which the purge is open still.
// Only a real node loses its processes and keeps its disk.
func TestEKCOsNodeDiesInAPurge(t *testing.T) {
	t.Parallel()
	const node = "worker-1"
	w := installQuick(t, nil, "--workers", "1")
	w.operator(t)
	first := w.node
	second := w.Start(t, "real-2", primary, built(t, ekcoImage))
	second.WaitReady(t)

	release := w.beginPurge(t, node)
	w.awaitMirrored(t, "purge-"+node+"-")
	first.stop(t)
	w.lose(t, first.Name)
	lost := time.Now()
	w.node = second
	w.on(t, "real-2", "real-1")
	t.Logf("EKCO runs on the other node %s after the loss", time.Since(lost).Round(time.Second))
	release()
	w.awaitPurged(t, node)
	const adopted = "taken over from journal"
	w.awaitRead(t, "the history says so", func(history string) bool {
		return strings.Contains(history, adopted) && strings.Contains(history, "ended, done")
	}, "history", "--node", node)

	first.boot(t)
	first.WaitReady(t)
	w.node = first
	w.on(t, "real-1", "real-2")
	history := w.mustEkco(t, "history", "--node", node)
	if strings.Contains(history, adopted) || !strings.Contains(history, "purge-node of node "+node+" requested by") {
		t.Errorf("it is not the journal that the node had:\n%s", history)
	}
	isOver := func(status string) bool { return !strings.Contains(status, "purge-node of node "+node) }
	w.awaitRead(t, "what another EKCO has finished is not open", isOver, "status")
	if _, code := w.ekco(t, "journal", "verify"); code != 0 {
		t.Errorf("the journal that was cut off is not whole: exit %d", code)
	}
}

// awaitMirrored waits until the cluster has the open action too: it is written there a moment after it
// is in the journal, and whoever loses the disk in between has to ask again.
func (w *world) awaitMirrored(t *testing.T, action string) {
	t.Helper()
	await.Until(t, await.HangTimeout, "the mirror has "+action, func() (bool, string) {
		mirror, err := w.Client.CoreV1().ConfigMaps("kurl").Get(t.Context(), "ekco-journal", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(mirror.Data["actions.json"], action), mirror.Data["actions.json"]
	})
}

// on has EKCO run on the first of two nodes.
func (w *world) on(t *testing.T, node, other string) {
	t.Helper()
	w.Kubectl(t, "uncordon", node)
	w.Kubectl(t, "cordon", other)
	for {
		pod := w.operator(t)
		at := w.Kubectl(t, "--namespace", "kurl", "get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")
		if at == node {
			break
		}
		w.Kubectl(t, "--namespace", "kurl", "delete", "pod", pod)
	}
	w.Kubectl(t, "uncordon", other)
}
