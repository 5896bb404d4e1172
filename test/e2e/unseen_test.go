package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

func TestAPrimaryDeletedByHandBeforeEKCOCameIsPurgedAndATypoIsNot(t *testing.T) {
	t.Parallel()
	k := startKubeadmCluster(t, clusterStatus121)
	k.node("lose", "primary-3")
	k.etcd.Kill("primary-3")
	if err := k.client.CoreV1().Nodes().Delete(t.Context(), "primary-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o := newOperator(t, k.kubeconfigFor("kurl/ekco", nil), map[string]string{"certificates_dir": k.etcd.CertificatesDir()})
	before := k.clusterStatus()
	untouched := func() {
		t.Helper()
		if got := k.members("primary-1"); len(strings.Fields(got)) != 3 {
			t.Errorf("etcd has the members %q", got)
		}
		if after := k.clusterStatus(); after != before {
			t.Errorf("the ClusterStatus is\n%s", after)
		}
		for _, name := range []string{"primary-4", "primary-3"} {
			if events := o.events("--node", name); len(events) != 0 {
				t.Errorf("about %s was recorded %v", name, events)
			}
		}
	}
	look := func() {
		t.Helper()
		output, code := o.ekco("purge-node", "primary-4", "--force", "--kubeconfig", o.kubeconfig)
		for _, want := range []string{`unknown node "primary-4"`, "found no trace of it in", "etcd", "did you mean", "primary-3"} {
			if code != 1 || !strings.Contains(output, want) {
				t.Errorf("a typo: exit %d, no %q:\n%s", code, want, output)
			}
		}
		output = o.mustEkco("purge-node", "primary-3", "--dry-run", "--kubeconfig", o.kubeconfig)
		for _, want := range []string{"NodeWasSeen", "etcd member primary-3", "remove-etcd-member", "remove-kubeadm-endpoint"} {
			if !strings.Contains(output, want) {
				t.Errorf("a dry run has no %q:\n%s", want, output)
			}
		}
		untouched()
	}

	o.mustEkco("purge-node", "primary-3", "--dry-run", "--kubeconfig", o.kubeconfig)
	if _, err := os.Stat(o.journal); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dry run created a journal: %v", err)
	}
	look() // where no operator runs
	o.startReady()
	look()

	output := o.mustEkco("purge-node", "primary-3")
	if got := k.members("primary-1"); strings.Contains(got, "primary-3") || len(strings.Fields(got)) != 2 {
		t.Errorf("etcd has the members %q, want primary-1 and primary-2:\n%s", got, output)
	}
	if after := k.clusterStatus(); strings.Contains(after, "primary-3") || !strings.Contains(after, k.etcd.IP("primary-2")) {
		t.Errorf("the ClusterStatus is\n%s", after)
	}
	if !strings.Contains(output, "(NodeWasSeen)") || !strings.Contains(output, "which EKCO never saw") {
		t.Errorf("the command says:\n%s", output)
	}
	o.waitState("primary-3", fsmnode.Purged)
	o.checkRecorded("primary-3")
	recorded := len(o.events("--node", "primary-3"))
	if again := o.mustEkco("purge-node", "primary-3"); !strings.Contains(again, "already") {
		t.Errorf("a second purge says:\n%s", again)
	}
	if got := len(o.events("--node", "primary-3")); got != recorded {
		t.Errorf("a second purge recorded %d events", got-recorded)
	}
	if tree := o.mustEkco("history", "-o", "tree", "--node", "primary-3"); !strings.Contains(tree, "purge-node primary-3: done") || !strings.Contains(tree, "never saw") {
		t.Errorf("the history is\n%s", tree)
	}

	o.running.Stop(await.HangTimeout)
	recordedFile, err := os.ReadFile(o.journal)
	if err != nil {
		t.Fatal(err)
	}
	// Without --config, EKCO looks for more than the operator does.
	dry := child.Start(t, binaries.ekco, "purge-node", "worker-1", "--dry-run", "--journal", o.journal, "--kubeconfig", o.kubeconfig)
	if code := dry.Wait(await.HangTimeout); code != 0 || !strings.Contains(dry.Output.String(), "worker-1 can be purged now") {
		t.Errorf("a dry run with other settings: exit %d\n%s", code, dry.Output)
	}
	if after, err := os.ReadFile(o.journal); err != nil || !bytes.Equal(recordedFile, after) {
		t.Errorf("a dry run changed the journal (%v)", err)
	}
}
