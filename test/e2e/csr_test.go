package e2e

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

var approving = map[string]string{"auto_approve_kubelet_csrs": "true"}

// asks creates a request as the kubelet of a node does: under its name, and admitted by
// the API server's node authorizer.
func (c *cluster) asks(node string, names ...string) string {
	c.t.Helper()
	return c.asksWith(node, csrsim.Sign(csrsim.Template(node, names...), nil))
}

func (c *cluster) asksWith(node string, request []byte) string {
	c.t.Helper()
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: journal.NodeUser + node, Groups: []string{"system:nodes", "system:authenticated"}}
	kubelet, err := kubernetes.NewForConfig(config)
	if err != nil {
		c.t.Fatal(err)
	}
	created, err := kubelet.CertificatesV1().CertificateSigningRequests().Create(c.t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "csr-"},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: csr.Signer, Usages: csrsim.NewUsages},
	}, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return created.Name
}

func (c *cluster) request(name string) *certificatesv1.CertificateSigningRequest {
	c.t.Helper()
	request, err := c.client.CertificatesV1().CertificateSigningRequests().Get(context.WithoutCancel(c.t.Context()), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return request
}

// waitIssued waits for the certificate, and returns it and the approval.
func (c *cluster) waitIssued(name string) (*x509.Certificate, certificatesv1.CertificateSigningRequestCondition) {
	c.t.Helper()
	var request *certificatesv1.CertificateSigningRequest
	eventually(c.t, await.HangTimeout, "the certificate of "+name+" is issued", func() (bool, string) {
		request = c.request(name)
		return len(request.Status.Certificate) > 0, fmt.Sprintf("%+v", request.Status.Conditions)
	})
	block, _ := pem.Decode(request.Status.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		c.t.Fatal(err)
	}
	return certificate, request.Status.Conditions[0]
}

// addresses are what the kubelet of a node asks for.
func (c *cluster) addresses(node string) (hostname, ip string) {
	c.t.Helper()
	found, err := c.client.CoreV1().Nodes().Get(c.t.Context(), node, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, address := range found.Status.Addresses {
		switch address.Type {
		case corev1.NodeHostName:
			hostname = address.Address
		case corev1.NodeInternalIP:
			ip = address.Address
		}
	}
	return hostname, ip
}

func (o *operator) waitRequest(name string, want journal.State) string {
	o.t.Helper()
	output := ""
	eventually(o.t, await.HangTimeout, fmt.Sprintf("request %s is %s", name, want), func() (bool, string) {
		said, _ := o.ekco("explain", "csr/"+name)
		output = said
		return strings.Contains(said, "State:    "+string(want)), said
	})
	return output
}

func approves(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/approval")
}

func TestAKubeletGetsItsServingCertificateAndNoOther(t *testing.T) {
	t.Parallel()
	c, o := install(t, approving)
	o.startReady()
	hostname, ip := c.addresses("worker-1")
	good := c.asks("worker-1", hostname, ip)
	forged := map[string]string{
		c.asks("worker-1", hostname, "10.96.0.1"):                                       "the address of the Kubernetes API",
		c.asks("worker-2", "kubernetes.default.svc"):                                    "the name of the Kubernetes API",
		c.asks("worker-3", hostname, ip):                                                "not among the addresses of Node worker-3",
		c.asks("primary-1", "127.0.0.1"):                                                "a loopback address",
		c.asks("worker-9", "worker-9"):                                                  "there is no Node worker-9",
		c.asksWith("worker-2", csrsim.Sign(csrsim.Template("worker-1", hostname), nil)): "but system:node:worker-2 created it",
	}
	certificate, approval := c.waitIssued(good)
	if !slices.Equal(certificate.DNSNames, []string{hostname}) || len(certificate.IPAddresses) != 1 || certificate.IPAddresses[0].String() != ip {
		t.Errorf("issued for %v and %v, want %s and %s", certificate.DNSNames, certificate.IPAddresses, hostname, ip)
	}
	if approval.Type != certificatesv1.CertificateApproved || approval.Reason != csr.ReasonApproved ||
		!strings.Contains(approval.Message, "system:node:worker-1 requested the certificate for itself") {
		t.Errorf("approved by %+v", approval)
	}
	o.waitRequest(good, fsmcsr.Approved)
	for name, why := range forged {
		said := o.waitRequest(name, fsmcsr.Refused)
		if !strings.Contains(said, why) {
			t.Errorf("does not say %q:\n%s", why, said)
		}
		if request := c.request(name); len(request.Status.Conditions) > 0 {
			t.Errorf("decided on a request that asks for %s: %+v", why, request.Status)
		}
	}
	t.Logf("%s", o.mustEkco("status"))
	o.checkRecorded("worker-1")

	// Somebody else approves one that EKCO refuses, and denies another.
	names := []string{}
	for name := range forged {
		names = append(names, name)
	}
	c.kubectl("certificate", "deny", names[0])
	o.waitRequest(names[0], fsmcsr.Gone)
	c.kubectl("delete", "csr", names[1])
	o.waitRequest(names[1], fsmcsr.Gone)
}

func TestARequestIsApprovedAtOnceWhereWatchingIsGranted(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.applyShipped("namespace.yaml", "", "optional")
	o := newOperator(t, c.kubeconfigFor("kurl/ekco", nil), map[string]string{"auto_approve_kubelet_csrs": "true", "reconcile_interval": "24h"})
	o.startReady()
	eventually(t, await.HangTimeout, "EKCO has settled", func() (bool, string) {
		hostname, ip := c.addresses("worker-1")
		name := c.asks("worker-1", hostname, ip)
		c.waitIssued(name)
		return true, ""
	})
	hostname, ip := c.addresses("worker-2")
	began := time.Now()
	request := c.asks("worker-2", hostname, ip)
	c.waitIssued(request)
	o.waitRequest(request, fsmcsr.Approved)
	seen, done := o.whenApproved(request)
	t.Logf("EKCO saw it %s after it was sent, and had approved it %s after that", seen.Sub(began), done.Sub(seen))

	// A request that comes before its Node has an address waits for it, and the dead
	// predecessor of a replacement stands in nobody's way for long.
	if _, err := c.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	early := c.asks("late", "late", "10.128.9.9")
	o.waitRequest(early, fsmcsr.Pending)
	c.setAddresses("late", "late", "10.128.9.9")
	c.waitIssued(early)

	_, taken := c.addresses("worker-3")
	c.setAddresses("late", "late", "10.128.9.9", taken)
	contested := c.asks("late", "late", taken)
	if said := o.waitRequest(contested, fsmcsr.Refused); !strings.Contains(said, "which node worker-3 has too") {
		t.Errorf("says\n%s", said)
	}
	eventually(t, await.HangTimeout, "a Kubernetes Event on the Node tells of the refusal", func() (bool, string) {
		said := c.kubectl("get", "events", "--field-selector", "involvedObject.kind=Node,involvedObject.name=late,reason=KubeletCertificateNotApproved", "-o", "wide")
		return strings.Contains(said, "which node worker-3 has too"), said
	})
	c.node("lose", "worker-3", "--wait", await.HangTimeout.String())
	c.waitIssued(contested)
}

// whenApproved returns when the journal was told of a request, and when EKCO had approved
// it.
func (o *operator) whenApproved(request string) (seen, done time.Time) {
	o.t.Helper()
	for _, event := range o.events("--component", "csr") {
		switch {
		case event.Subject.Name != request:
		case event.Type == journal.TypeThingObserved && seen.IsZero():
			seen = event.Time
		case event.Type == journal.TypeStepDone:
			done = event.Time
		}
	}
	if seen.IsZero() || done.IsZero() {
		o.t.Fatalf("request %s was seen at %s and approved at %s", request, seen, done)
	}
	return seen, done
}

// setAddresses says what a kubelet says of its Node: its host name and addresses.
func (c *cluster) setAddresses(node, hostname string, ips ...string) {
	c.t.Helper()
	addresses := []string{fmt.Sprintf(`{"type":"Hostname","address":%q}`, hostname)}
	for _, ip := range ips {
		addresses = append(addresses, fmt.Sprintf(`{"type":"InternalIP","address":%q}`, ip))
	}
	status := `{"status":{"addresses":[` + strings.Join(addresses, ",") + `]}}`
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), node, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatal(err)
	}
}

func TestAnApprovalIsFinishedWhereverEKCOIsKilled(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"before the approval": false, "after the approval": true} {
		t.Run(name, func(t *testing.T) {
			c, g, o := installGated(t, approving)
			killed := o.startReady()
			held := g.holdNth(0, after, approves)
			hostname, ip := c.addresses("worker-1")
			request := c.asks("worker-1", hostname, ip)
			held.await(t)
			killed.Kill()
			held.pass()
			o.startReady()
			c.waitIssued(request)
			o.waitRequest(request, fsmcsr.Approved)
			eventually(t, await.HangTimeout, "the one approval is done", func() (bool, string) {
				got := o.outcomes("worker-1")[fsmcsr.Approve]
				return slices.Equal(got, []journal.Outcome{journal.OutcomeDone}), fmt.Sprint(got)
			})
			o.checkRecorded("worker-1")
		})
	}
}

func TestAThousandRequestsOfOneKubeletStandInNobodysWay(t *testing.T) {
	t.Parallel()
	c, o := install(t, approving)
	request := csrsim.Sign(csrsim.Template("worker-1", "kubernetes.default"), nil)
	for range 1000 {
		c.asksWith("worker-1", request)
	}
	o.startReady()
	hostname, ip := c.addresses("worker-2")
	c.waitIssued(c.asks("worker-2", hostname, ip))
	events := o.events("--node", "worker-1", "--component", "csr")
	// Three are looked at, and one thing stands for the others: each is told of and refused.
	// What stands for them may have to grow.
	if len(events) < 8 || len(events) > 8+2 {
		t.Errorf("a flood costs %d events", len(events))
	}
	status := o.mustEkco("status")
	if !strings.Contains(status, "further ones of system:node:worker-1") {
		t.Errorf("the status does not tell of the flood:\n%s", status)
	}
	t.Logf("%d events; %s", len(events), o.mustEkco("explain", "csr/further ones of system:node:worker-1"))
}
