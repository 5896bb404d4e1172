package nodetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/await"
)

// TestKOTSGetsWhatKubeletsKnowThePrimaryBy: the real kubelet is asked, and knows the client. A program on the
// node looks at the certificates there. Those that look at simulated primaries never end, and go with
// the cluster.
func TestKOTSGetsWhatKubeletsKnowThePrimaryBy(t *testing.T) {
	w := install(t, map[string]string{"rotate_certs": "true", "rotate_certs_image": "replicated/ekco:" + version.Get().Version}, "--workers", "0")
	w.operator(t)
	const name = "kubelet-client-cert"
	pki := w.node.Disk("etc/kubernetes/pki")
	old, err := w.authority.issueFor(2*time.Hour, "kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		t.Fatal(err)
	}
	secrets := w.Client.CoreV1().Secrets("default")
	if _, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"client.crt": old.cert, "client.key": old.key, "ca.crt": []byte("kept")},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	crt, err := os.ReadFile(filepath.Join(pki, "apiserver-kubelet-client.crt"))
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, patience, "the Secret has what the primary has", func() (bool, string) {
		secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return bytes.Equal(secret.Data["client.crt"], crt) && string(secret.Data["ca.crt"]) == "kept", w.mustEkco(t, "certificates")
	})
	await.Until(t, patience, "a kubelet was asked, and knows it", func() (bool, string) {
		history := w.mustEkco(t, "history", "--component", "certificate")
		return strings.Contains(history, "await-served is done"), history
	})
	await.Until(t, patience, "the certificates of the control plane were looked at", func() (bool, string) {
		table := w.mustEkco(t, "certificates")
		return strings.Contains(table, "control-plane/real-1") && strings.Contains(table, "/etc/kubernetes/admin.conf") &&
			strings.Contains(table, "/etc/kubernetes/pki/apiserver-kubelet-client.crt"), table
	})
	await.Until(t, patience, "what the kubelet serves was seen", func() (bool, string) {
		table := w.mustEkco(t, "certificates")
		return strings.Contains(table, "kubelet/real-1") && strings.Contains(table, ":10250"), table
	})
	t.Logf("%s", w.mustEkco(t, "certificates"))
}
