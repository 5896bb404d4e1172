package secrets_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
)

// kubelet answers as one does that knows those whom the pool's CAs have signed, and takes others
// for strangers.
func kubelet(t *testing.T, roots *x509.CertPool, stranger http.HandlerFunc) (port int) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			if _, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
				_, _ = fmt.Fprint(w, "ok")
				return
			}
		}
		stranger(w, r)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// nodes are those at the addresses, the last of which is a primary.
func nodes(t *testing.T, ready string, addresses ...string) *kubesim.Objects {
	t.Helper()
	objects := kubesim.NewObjects()
	for i, address := range addresses {
		labels := `{}`
		if i == len(addresses)-1 {
			labels = `{"node-role.kubernetes.io/control-plane":""}`
		}
		objects.Put(kube.Ref{Version: "v1", Resource: "nodes", Name: fmt.Sprintf("p%d", i)}, fmt.Sprintf(
			`{"metadata":{"labels":`+labels+`},"status":{"conditions":[{"type":"Ready","status":%q}],"addresses":[{"type":"Hostname","address":"p"},{"type":"InternalIP","address":%q}]}}`, ready, address))
	}
	return objects
}

func clientOf(t *testing.T) func(crt, key []byte) tls.Certificate {
	t.Helper()
	return func(crt, key []byte) tls.Certificate {
		t.Helper()
		pair, err := tls.X509KeyPair(crt, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
}

func TestAKubeletSaysWhomItAccepts(t *testing.T) {
	ca := certificatestest.CA(t, "kubernetes", time.Now().Add(365*day))
	roots := x509.NewCertPool()
	roots.AddCert(ca.Certificate)
	known := clientOf(t)(certificatestest.Pair(t, ca, "kube-apiserver-kubelet-client", time.Now().Add(300*day)))
	unknown := clientOf(t)(certificatestest.Pair(t, certificatestest.CA(t, "another", time.Now().Add(365*day)), "x", time.Now().Add(300*day)))
	closed := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Unauthorized", http.StatusUnauthorized) }
	open := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[healthz proxy])", http.StatusForbidden)
	}
	for name, stranger := range map[string]http.HandlerFunc{"closed": closed, "open to strangers": open} {
		t.Run(name, func(t *testing.T) {
			port := kubelet(t, roots, stranger)
			kubelets := secrets.Kubelets{Objects: nodes(t, "True", "192.0.2.1", "127.0.0.1"), Port: port}
			if err := kubelets.Accept(t.Context(), known); err != nil {
				t.Error(err)
			}
			if err := kubelets.Accept(t.Context(), unknown); err == nil || !strings.Contains(err.Error(), "does not accept the certificate: it answers 40") {
				t.Errorf("it says %v", err)
			}
			kubelets.Objects = nodes(t, "Unknown", "127.0.0.1")
			if err := kubelets.Accept(t.Context(), known); err == nil || !strings.Contains(err.Error(), "no node is ready") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestKubeletsThatDoNotAnswerProveNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ca := certificatestest.CA(t, "kubernetes", time.Now().Add(365*day))
	pair := clientOf(t)(certificatestest.Pair(t, ca, "x", time.Now().Add(300*day)))
	err = secrets.Kubelets{Objects: nodes(t, "True", "127.0.0.1"), Port: port}.Accept(t.Context(), pair)
	if err == nil || !strings.Contains(err.Error(), "ask the kubelet at 127.0.0.1:"+strconv.Itoa(port)) {
		t.Errorf("it says %v", err)
	}
}
