package certificatestest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
)

// The objects of a [Cluster].
var (
	RegistrySecret  = secrets.SecretRef("kurl", "registry-pki")
	KurlProxySecret = secrets.SecretRef("default", "kotsadm-tls")
	ContourSecret   = secrets.SecretRef("projectcontour", "contourcert")
	EnvoySecret     = secrets.SecretRef("projectcontour", "envoycert")
	KubeletSecret   = secrets.SecretRef("default", "kubelet-client-cert")
	Envoys          = kube.Ref{Group: "apps", Version: "v1", Resource: "daemonsets", Namespace: "projectcontour", Name: "envoy"}
)

// Cluster is a simulated cluster with certificates in Secrets, pods that serve them, and controllers that recreate
// pods. It uses the clock of the test's bubble.
type Cluster struct {
	*kubesim.Objects
	T testing.TB
	// CA is the cluster's CA.
	CA certificates.Authority
	// ReadyAfter is how long a new pod takes to become ready; zero means never.
	ReadyAfter time.Duration
	// ahead is how far the API server's clock is ahead, in nanoseconds.
	ahead atomic.Int64

	keys Keys
	mu   sync.Mutex
	// If set, unsigned is the error of each signing, and unaccepted is the error with which kubelets reject each
	// client.
	unsigned, unaccepted error
	// primary is the primary's client certificate for kubelets, or the error of reading it.
	primary    secrets.Client
	unreadable error
	// loaded is the certificate that each pod serves, by the pod's address.
	loaded map[string]*x509.Certificate
	pods   int
	// renewed counts the pods that replaced others.
	renewed int
}

// NewCluster returns a cluster without certificates.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{
		Objects: kubesim.NewObjects(), T: t, CA: CA(t, "kubernetes", time.Now().Add(5*certificates.Year)),
		ReadyAfter: 10 * time.Second, loaded: map[string]*x509.Certificate{},
	}
	c.AfterEffect = c.react
	return c
}

// Options returns the options of the store of the cluster's certificates.
func (c *Cluster) Options() secrets.Options {
	return secrets.Options{
		Registry: RegistrySecret, KurlProxy: KurlProxySecret, Contour: ContourSecret, Envoy: EnvoySecret, KubeletClient: KubeletSecret,
		Client: c.client, Accepts: c.accepts,
		Authority: func(time.Time) (certificates.Authority, error) { return c.CA, c.signs() },
		Leaf:      c.leaf, NewKey: c.keys.New,
		ServerTime: func() (time.Time, bool) { return time.Now().Add(time.Duration(c.ahead.Load())), true },
	}
}

// Ahead sets how far the API server's clock is ahead.
func (c *Cluster) Ahead(by time.Duration) { c.ahead.Store(int64(by)) }

// Store returns a store of the cluster's certificates.
func (c *Cluster) Store() *secrets.Store { return secrets.New(c, c.Options()) }

// PodRef names a pod.
func PodRef(namespace, name string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: namespace, Name: name}
}

// Pod adds a ready pod of an app. It serves the present certificate of the Secret.
func (c *Cluster) Pod(namespace, app, name string, secret kube.Ref, key string) {
	c.T.Helper()
	c.mu.Lock()
	c.pods++
	address := fmt.Sprintf("10.0.0.%d", c.pods)
	c.mu.Unlock()
	c.Put(PodRef(namespace, name), fmt.Sprintf(
		`{"metadata":{"labels":{"app":%q}},"status":{"phase":"Running","podIP":%q,"conditions":[{"type":"Ready","status":"True"}]}}`, app, address))
	c.load(address, secret, key)
}

// load makes the pods at an address serve the present certificate of the Secret.
func (c *Cluster) load(address string, secret kube.Ref, key string) {
	c.T.Helper()
	served := c.Held(secret, key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded[address] = served
}

// Held returns the first certificate of a Secret, nil if there is none.
func (c *Cluster) Held(secret kube.Ref, key string) *x509.Certificate {
	c.T.Helper()
	data, _ := c.Object(secret)["data"].(map[string]any)
	text, _ := data[key].(string)
	content, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		c.T.Fatal(err)
	}
	chain, err := certificates.File{Name: secret.String(), Content: content}.Chain()
	if err != nil {
		return nil
	}
	return chain[0]
}

var (
	errRefused = errors.New("connection refused")
	errUnknown = errors.New("the kubelet does not know who asks")
)

// leaf simulates a TLS handshake.
func (c *Cluster) leaf(_ context.Context, address string) (*x509.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	host, _, _ := strings.Cut(address, ":")
	if served := c.loaded[host]; served != nil {
		return served, nil
	}
	return nil, fmt.Errorf("TLS handshake with %s: %w", address, errRefused)
}

// react simulates how controllers and servers react to a change.
func (c *Cluster) react(effect string) {
	switch {
	case strings.HasPrefix(effect, "delete pods kurl/"):
		c.mu.Lock()
		c.renewed++
		name := fmt.Sprintf("registry-new-%d", c.renewed)
		c.mu.Unlock()
		c.after(func() { c.Pod("kurl", "registry", name, RegistrySecret, "registry.crt") })
	case effect == "update "+KurlProxySecret.String():
		c.reload("default", "kurl-proxy-kotsadm", KurlProxySecret)
	case effect == "update "+ContourSecret.String():
		c.reload("projectcontour", "contour", ContourSecret)
	case effect == "patch "+Envoys.String():
		c.after(func() {
			c.Edit(Envoys, func(object map[string]any) {
				object["status"] = map[string]any{
					"observedGeneration": object["metadata"].(map[string]any)["generation"], "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3,
				}
			})
		})
	}
}

func (c *Cluster) after(happens func()) {
	if c.ReadyAfter > 0 {
		time.AfterFunc(c.ReadyAfter, happens)
	}
}

// reload makes the pods of an app read the Secret again, as servers do that watch it.
func (c *Cluster) reload(namespace, app string, secret kube.Ref) {
	c.after(func() {
		for _, address := range c.addresses(namespace, app) {
			c.load(address, secret, "tls.crt")
		}
	})
}

func (c *Cluster) addresses(namespace, app string) (addresses []string) {
	for i := 1; i <= 100; i++ {
		object := c.Object(PodRef(namespace, fmt.Sprintf("%s-%d", app, i)))
		if status, is := object["status"].(map[string]any); is {
			addresses = append(addresses, status["podIP"].(string))
		}
	}
	return addresses
}

// InstallRegistry installs the registry with a number of pods and a certificate that expires at until.
func (c *Cluster) InstallRegistry(until time.Time, pods int) {
	c.T.Helper()
	c.Put(RegistrySecret, Registry(c.T, c.CA, until))
	for i := range pods {
		c.Pod("kurl", "registry", fmt.Sprintf("registry-%d", i+1), RegistrySecret, "registry.crt")
	}
}

// InstallKurlProxy installs the proxy. If name is not empty, the certificate is a customer's and has that name.
func (c *Cluster) InstallKurlProxy(until time.Time, name string) {
	c.T.Helper()
	c.Put(KurlProxySecret, KurlProxy(c.T, until, name))
	c.Pod("default", "kurl-proxy-kotsadm", "kurl-proxy-kotsadm-1", KurlProxySecret, "tls.crt")
}

// InstallContour installs Contour, and Envoy on three nodes.
func (c *Cluster) InstallContour(until time.Time) {
	c.T.Helper()
	contour, envoy := Contour(c.T, until)
	c.Put(ContourSecret, contour)
	c.Put(EnvoySecret, envoy)
	c.Pod("projectcontour", "contour", "contour-1", ContourSecret, "tls.crt")
	c.Put(Envoys, `{"spec":{"template":{"metadata":{}}},"status":{"observedGeneration":1,"desiredNumberScheduled":3,"updatedNumberScheduled":3,"numberAvailable":3}}`)
}

// SignNothing makes each signing fail with this error; nil ends that.
func (c *Cluster) SignNothing(because error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsigned = because
}

func (c *Cluster) signs() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unsigned
}

// InstallKubeletClient installs KOTS' client certificate for kubelets, which expires at until.
func (c *Cluster) InstallKubeletClient(until time.Time) {
	c.T.Helper()
	certificate, key := Pair(c.T, c.CA, "kube-apiserver-kubelet-client", until)
	c.Put(KubeletSecret, Secret(map[string][]byte{"client.crt": certificate, "client.key": key, "ca.crt": []byte("kept")}))
}

// RenewPrimary gives the primary a client certificate for kubelets that expires at until.
func (c *Cluster) RenewPrimary(until time.Time) {
	c.T.Helper()
	certificate, key := Pair(c.T, c.CA, "kube-apiserver-kubelet-client", until)
	c.SetPrimary(certificate, key, nil)
}

// SetPrimary sets the primary's client certificate for kubelets, or the error of reading it.
func (c *Cluster) SetPrimary(certificate, key []byte, because error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primary = secrets.Client{
		Certificate: certificates.File{Name: "apiserver-kubelet-client.crt", Content: certificate},
		Key:         certificates.File{Name: "apiserver-kubelet-client.key", Content: key},
		CAs:         []*x509.Certificate{c.CA.Certificate},
	}
	c.unreadable = because
}

// AcceptNothing makes kubelets reject each client with this error. With nil, kubelets accept clients with a certificate
// of the cluster's CA again.
func (c *Cluster) AcceptNothing(because error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unaccepted = because
}

func (c *Cluster) client() (secrets.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary, c.unreadable
}

func (c *Cluster) accepts(_ context.Context, pair tls.Certificate) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unaccepted == nil && !certificates.SignedBy(pair.Leaf, c.CA.Certificate) {
		return errUnknown
	}
	return c.unaccepted
}
