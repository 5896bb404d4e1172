package nodetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/await"
)

// givesKOTSItsClient: KOTS gets what kubelets know the primary by. The real kubelet is asked, and knows the client;
// a program on the node looks at the certificates there.
func (c *controlPlane) givesKOTSItsClient(t *testing.T) {
	const name = "kubelet-client-cert"
	pki := c.node.Disk("etc/kubernetes/pki")
	old, err := c.authority.issueFor(2*time.Hour, "kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		t.Fatal(err)
	}
	secrets := c.Client.CoreV1().Secrets("default")
	if _, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"client.crt": old.cert, "client.key": old.key, "ca.crt": []byte("kept")},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	crt, err := os.ReadFile(filepath.Join(pki, "apiserver-kubelet-client.crt"))
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, await.HangTimeout, "the Secret has what the primary has", func() (bool, string) {
		secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return bytes.Equal(secret.Data["client.crt"], crt) && string(secret.Data["ca.crt"]) == "kept", fmt.Sprintf("%q", secret.Data)
	})
	c.awaitRead(t, "a kubelet was asked, and knows it", func(history string) bool {
		return strings.Contains(history, "await-served is done")
	}, "history", "--component", "certificate")
	c.awaitRead(t, "the certificates of the control plane were looked at, and what the kubelet serves", func(table string) bool {
		return strings.Contains(table, "control-plane/real-1") && strings.Contains(table, "/etc/kubernetes/admin.conf") &&
			strings.Contains(table, "/etc/kubernetes/pki/apiserver-kubelet-client.crt") &&
			strings.Contains(table, "kubelet/real-1") && strings.Contains(table, ":10250")
	}, "certificates")
	if err := secrets.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil { // later scenes are not about it
		t.Fatal(err)
	}
}
