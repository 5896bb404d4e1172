package e2e

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// asInAPod gives a program, in a mount namespace of its own, the files that
// kubelet mounts into a pod.
const asInAPod = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
cp -r "$0" /run/secrets/kubernetes.io/serviceaccount && exec "$@"`

// startInPod starts the operator without a kubeconfig, as in its pod.
func (o *operator) startInPod() *child.Process {
	o.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err == nil {
		err = rest.LoadTLSFiles(config)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		o.t.Fatal(err)
	}
	account := o.t.TempDir()
	for name, content := range map[string]string{"token": config.BearerToken, "ca.crt": string(config.CAData), "namespace": "kurl"} {
		if content == "" {
			o.t.Fatalf("the kubeconfig has no %s", name)
		}
		if err := os.WriteFile(filepath.Join(account, name), []byte(content), 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
	env := []string{"KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(), o.machine()}
	o.running = child.StartWith(o.t, env, "unshare", "--mount", "sh", "-c", asInAPod, account, binaries.ekco,
		"operator", "--journal", o.journal, "--config", o.config, "--listen_address", o.address, "--log_level", "debug")
	return o.running
}

// After a cluster was installed anew on the hosts of an old one, its installer waits
// for EKCO's pod to be ready.
func TestAPodThatFindsTheJournalOfAnEarlierClusterIsReady(t *testing.T) {
	t.Parallel()
	_, o := install(t, nil)
	store, err := bolt.Open(t.Context(), o.journal, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.BindCluster(t.Context(), "uid-of-the-old-cluster"), store.Close()); err != nil {
		t.Fatal(err)
	}
	o.startInPod()
	o.waitReady()
	replaced := o.status().Journal.Replaced
	if replaced == nil || replaced.ClusterUID != "uid-of-the-old-cluster" || !strings.HasPrefix(replaced.File, o.journal+".of-cluster-uid-of-the-old-cluster-") {
		t.Fatalf("the status tells of %+v", replaced)
	}
	if _, err := rescue.Verify(replaced.File); err != nil {
		t.Errorf("what was set aside: %v", err)
	}
	if shown := o.mustEkco("status"); !strings.Contains(shown, replaced.File) {
		t.Errorf("the status does not say where the old journal is:\n%s", shown)
	}
	o.running.Stop(await.HangTimeout)

	o.journal = filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(o.journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.startInPod()
	o.waitReady()
	if replaced := o.status().Journal.Replaced; replaced == nil || !strings.Contains(replaced.File, ".not-a-journal-") {
		t.Errorf("of an empty file the status tells %+v", replaced)
	}
	o.startedAnew(t)
}

// startedAnew starts the operator again: what was set aside is of the past.
func (o *operator) startedAnew(t *testing.T) {
	t.Helper()
	before := o.status().Journal
	o.running.Stop(await.HangTimeout)
	o.startInPod()
	o.waitReady()
	if now := o.status().Journal; now.JournalID != before.JournalID || now.LastSeq < before.LastSeq {
		t.Errorf("the journal was %+v, and is %+v", before, now)
	}
}
