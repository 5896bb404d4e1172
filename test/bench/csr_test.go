package bench

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/journal"
)

// BenchmarkKubeletCertificate measures the time from a kubelet's request for a serving
// certificate to its approval, where watching is granted, each as the API server tells
// of it.
func BenchmarkKubeletCertificate(b *testing.B) {
	const kubelets = 30
	c := startPlane(b, "--primaries", "3", "--workers", fmt.Sprint(kubelets))
	c.kubectl(b, "apply", "-k", filepath.Join("..", "..", "deploy", "optional"))
	o := install(b, c.kubeconfig(b, nil), map[string]string{"auto_approve_kubelet_csrs": "true", "settling_time": "1s"})
	o.startReady(b)
	approveOne(b, c, "primary-1") // EKCO has settled
	for b.Loop() {
		logLoad(b)
		var took []time.Duration
		for i := range kubelets {
			took = append(took, approveOne(b, c, fmt.Sprintf("worker-%d", i+1)))
		}
		s := spreadOf(took)
		b.ReportMetric(milli(s.median), "median-ms")
		b.ReportMetric(milli(s.worst), "worst-ms")
	}
}

// kubelet returns a client with the identity of a node's kubelet, and what that asks for.
func (c *cluster) kubelet(b *testing.B, node string) (kubernetes.Interface, []string) {
	b.Helper()
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: journal.NodeUser + node, Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	found, err := c.client.CoreV1().Nodes().Get(b.Context(), node, metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, address := range found.Status.Addresses {
		if address.Type != corev1.NodeExternalIP { // all have the same here
			names = append(names, address.Address)
		}
	}
	return client, names
}

// approveOne creates a request and waits until it is approved.
func approveOne(b *testing.B, c *cluster, node string) time.Duration {
	b.Helper()
	kubelet, names := c.kubelet(b, node)
	began := time.Now()
	created, err := kubelet.CertificatesV1().CertificateSigningRequests().Create(b.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: csrsim.Sign(csrsim.Template(node, names...), nil), SignerName: csr.Signer, Usages: csrsim.NewUsages,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	watching, err := c.client.CertificatesV1().CertificateSigningRequests().Watch(b.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", created.Name).String(), ResourceVersion: created.ResourceVersion,
	})
	if err != nil {
		b.Fatal(err)
	}
	defer watching.Stop()
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for {
		select {
		case event := <-watching.ResultChan():
			if approved(event) {
				took := time.Since(began)
				c.forget(b, created.Name)
				return took
			}
		case <-late.C:
			b.Fatalf("nobody approved request %s", created.Name)
		}
	}
}

func approved(event watch.Event) bool {
	request, ok := event.Object.(*certificatesv1.CertificateSigningRequest)
	return ok && slices.ContainsFunc(request.Status.Conditions, func(condition certificatesv1.CertificateSigningRequestCondition) bool {
		return condition.Type == certificatesv1.CertificateApproved
	})
}

func (c *cluster) forget(b *testing.B, request string) {
	b.Helper()
	if err := c.client.CertificatesV1().CertificateSigningRequests().Delete(b.Context(), request, metav1.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
}
