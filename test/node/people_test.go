package nodetest

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/await"
)

// slowly keeps a purge open: somebody else's finalizer delays that the Node goes.
const slowly = `{"metadata":{"finalizers":["test.example.com/slow"]}}`

// hold has the purge of a node go on until the function it returns is called.
func (w *world) hold(t testing.TB, name string) (release func()) {
	t.Helper()
	w.Kubectl(t, "patch", "node", name, "--type", "merge", "--patch", slowly)
	return func() {
		t.Helper()
		w.Kubectl(t, "patch", "node", name, "--type", "merge", "--patch", `{"metadata":{"finalizers":null}}`)
	}
}

// at is EKCO in its pod as somebody at a terminal has it.
func (w *world) at(t *testing.T, args ...string) *terminal {
	t.Helper()
	return onTerminal(t, w.kubectl(append([]string{"--namespace", "kurl", "exec", "-it", w.operator(t), "--", "ekco"}, args...)...))
}

// purgesOnATerminal: the purge of a node that is ready is asked about. Who has asked for it may
// drag the window's corner, press Ctrl-C, or lose the terminal; the purge goes on.
func purgesOnATerminal(t *testing.T, w *world) {
	const node, question, gone, ctrlC = "worker-3", "anyway? [y/N] ", "waits for finalizer test.example.com/slow", "\x03"
	release := w.hold(t, node)
	watching := w.at(t, "history", "--follow", "--node", node)
	watching.awaits(t, "node "+node+" (worker) is ready")

	no := w.at(t, "purge-node", node)
	no.awaits(t, "(NodeStillGone)", question)
	no.types(t, "n\r")
	if code := no.ends(t); code != 1 || !strings.Contains(unwrapped(no.shown()), "nothing was changed") {
		t.Errorf("a no: exit %d\n%s", code, no.shown())
	}

	yes := w.at(t, "purge-node", node)
	yes.awaits(t, question)
	yes.types(t, "y\r")
	yes.awaits(t, "warning, answered with yes", "… delete-node: "+gone)
	yes.resize(t, 50, 200)
	await.Until(t, await.HangTimeout, "the terminal in the pod has the size of that outside", func() (bool, string) {
		sizes := w.Kubectl(t, "--namespace", "kurl", "exec", w.operator(t), "--", "bash", "-c", "for t in /dev/pts/[0-9]*; do stty -F $t size; done")
		return strings.Contains(sizes, "50 200"), sizes
	})
	shown := len(yes.shown())
	await.Until(t, await.HangTimeout, "it goes on", func() (bool, string) {
		return strings.Contains(unwrapped(yes.shown()[shown:]), "… delete-node"), yes.shown()[shown:]
	})
	yes.lose()

	back := w.at(t, "purge-node", node)
	back.awaits(t, question)
	back.types(t, "y\r")
	back.awaits(t, "resuming purge-"+node, gone)
	back.types(t, ctrlC)
	if code := back.ends(t); code != 1 || !strings.Contains(unwrapped(back.shown()), "the operator continues purge-"+node) {
		t.Errorf("Ctrl-C: exit %d\n%s", code, back.shown())
	}
	if _, err := w.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{}); err != nil {
		t.Fatalf("the purge was over before: %v", err)
	}
	release()
	w.awaitPurged(t, node)
	watching.awaits(t, "delete-node begins", "Purging → Purged")
	watching.types(t, ctrlC)
	if code := watching.ends(t); code != 0 {
		t.Errorf("the history: exit %d", code)
	}
	await.Until(t, await.HangTimeout, "all these commands have ended in the pod", func() (bool, string) {
		programs := w.programs(t)
		return !strings.Contains(programs, "purge-node") && !strings.Contains(programs, "history"), programs
	})
	if history := w.mustEkco(t, "history", "--node", node, "--type", "action.requested"); strings.Count(history, "requested by") != 1 {
		t.Errorf("it was asked for more than once:\n%s", history)
	}
}

// followsWithoutAReader: who follows is told nothing of a client that is gone. With the seventh
// the oldest ends, and they have the memory that they may have.
func followsWithoutAReader(t *testing.T, w *world) {
	const followers, most = 8, 6
	for i := range followers {
		program := w.kubectl("--namespace", "kurl", "exec", w.operator(t), "--", "ekco", "history", "--follow", "--limit", fmt.Sprint(i+1), "-o", "json")
		var shown lines
		program.Stdout = &shown
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		await.Until(t, await.HangTimeout, "it shows what is there", func() (bool, string) { return strings.Count(shown.String(), "\n") > i, shown.String() })
		_ = program.Process.Kill() // it fails when it has ended, which is seen below
		_ = program.Wait()
	}
	await.Until(t, await.HangTimeout, "the oldest have ended", func() (bool, string) {
		programs := w.programs(t)
		return strings.Count(programs, "history --follow") <= most && !strings.Contains(programs, "--limit 1 ") && !strings.Contains(programs, "--limit 2 "), programs
	})
}
