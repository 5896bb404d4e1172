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

// movesWithAnOpenPurge: EKCO's own node dies in a purge; EKCO begins on the second primary with an
// empty disk, and finishes it by what is in the API. The first node then comes back with the
// journal that it had, in which the purge is open still.
func movesWithAnOpenPurge(t *testing.T, w *world) {
	second := w.Start(t, "real-2", primary, image, taskImage)
	second.WaitReady(t)
	w.configure(t, quickly) // which purges no node by itself
	w.Kubectl(t, "--namespace", "kurl", "rollout", "restart", "deployment/ekc-operator")
	w.Kubectl(t, "--namespace", "kurl", "rollout", "status", "deployment/ekc-operator", "--timeout=120s")
	w.on(t, "real-1", "real-2")

	// Somebody who could not be asked about a ready node has ten seconds to call it off.
	w.mustEkco(t, "purge-node", "worker-6", "--no-wait")
	w.awaitMirrored(t, "purge-worker-6-")
	w.node.stop(t)
	stopped := time.Now()
	w.awaitPurged(t, "worker-6")
	t.Logf("%s after the power was off the purge was finished on the other node", time.Since(stopped).Round(time.Second))
	const adopted = "taken over from journal"
	await.Until(t, patience, "the history says so", func() (bool, string) {
		history, code := w.ekco(t, "history", "--node", "worker-6")
		return code == 0 && strings.Contains(history, adopted) && strings.Contains(history, "ended, done"), history
	})

	w.node.boot(t)
	w.node.WaitReady(t)
	w.on(t, "real-1", "real-2")
	history := w.mustEkco(t, "history", "--node", "worker-6")
	if strings.Contains(history, adopted) || !strings.Contains(history, "purge-node of node worker-6 asked for by") {
		t.Errorf("it is not the journal that the node had:\n%s", history)
	}
	if open := w.mustEkco(t, "status"); strings.Contains(open, "purge worker-6") {
		t.Errorf("what another EKCO has finished is open still:\n%s", open)
	}
	if _, code := w.ekco(t, "journal", "verify"); code != 0 {
		t.Errorf("the journal that was cut off is not whole: exit %d", code)
	}
}

// awaitMirrored waits until the cluster has the open action too: it is written there a moment after it
// is in the journal, and whoever loses the disk in between has to ask again.
func (w *world) awaitMirrored(t *testing.T, action string) {
	t.Helper()
	await.Until(t, patience, "the mirror has "+action, func() (bool, string) {
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
