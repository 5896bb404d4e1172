package loadbalancer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec"
	"github.com/replicatedhq/ekco/journal"
)

// container is the name of HAProxy's container.
const container = "haproxy"

// Exec runs programs in pods. [podexec.Client] implements it.
type Exec interface {
	Exec(ctx context.Context, pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error)
}

// Logs reads logs of pods. [kube.Client] implements it.
type Logs interface {
	PodLog(ctx context.Context, namespace, name string, last int64) (string, error)
}

// Client implements [Running] for a real cluster.
type Client struct {
	objects kube.Objects
	logs    Logs
	exec    Exec
	// authority has the cluster's CAs. With nil, certificates are not verified.
	authority *x509.CertPool
	// port is the port of HAProxy, and apiPort the port of API servers.
	port, apiPort int
}

var _ Running = (*Client)(nil)

// NewClient returns a Client, and sends no request. authority has the CAs that verify the API servers' certificates.
// With nil, certificates are not verified.
func NewClient(objects kube.Objects, logs Logs, exec Exec, authority *x509.CertPool) *Client {
	return &Client{objects: objects, logs: logs, exec: exec, authority: authority, port: Port, apiPort: APIPort}
}

// verify returns an error unless the cluster's CA has signed the certificate of a connection.
func (c *Client) verify(state tls.ConnectionState) error {
	if c.authority == nil {
		return nil
	}
	intermediates := x509.NewCertPool()
	for _, certificate := range state.PeerCertificates[1:] {
		intermediates.AddCert(certificate)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.authority, Intermediates: intermediates})
	return err
}

// Pod implements [Running]. The name of a static pod ends with the name of its node, which the kubelet adds.
func (c *Client) Pod(ctx context.Context, node string) (Pod, error) {
	name := PodName + "-" + node
	pod, err := kube.Get[corev1.Pod](ctx, c.objects, kube.Ref{Version: "v1", Resource: "pods", Namespace: Namespace, Name: name})
	if err != nil {
		return Pod{}, kube.NamePermission(err, "get", "pods")
	}
	return podOf(&pod), nil
}

// Pods implements [Running].
func (c *Client) Pods(ctx context.Context) (map[string]Pod, error) {
	pods, err := kube.List[corev1.Pod](ctx, c.objects, kube.Ref{Version: "v1", Resource: "pods", Namespace: Namespace}, Label, App)
	if err != nil {
		return nil, fmt.Errorf("list the pods of HAProxy in %s: %w", Namespace, kube.NamePermission(err, "list", "pods"))
	}
	all := make(map[string]Pod, len(pods))
	for _, pod := range pods {
		if pod.Name == PodName+"-"+pod.Spec.NodeName {
			all[pod.Spec.NodeName] = podOf(&pod)
		}
	}
	return all, nil
}

// replaced is how long a kubelet may take to end the pod of a former manifest: it checks the manifests every 20 s, and
// a container has 30 s to end.
const replaced = 50 * time.Second

// CheckRunning returns an error unless a pod of HAProxy runs with the manifest of its host. The pod must have started
// after the manifest was written, because at first the API server may still report the pod of an earlier attempt. But
// if an older pod is not replaced in time, CheckRunning accepts it: an interrupted attempt may have written the same
// manifest.
func CheckRunning(of *corev1.Pod, on journal.LoadBalancerOnNode, written time.Time) error {
	if time.Since(written) >= replaced {
		written = time.Time{}
	}
	return CheckStarted(of, on, written)
}

// CheckStarted returns an error unless a pod of HAProxy runs with the manifest of its host, and was started after the
// host's files were written.
func CheckStarted(of *corev1.Pod, on journal.LoadBalancerOnNode, written time.Time) error {
	pod := podOf(of)
	if lacks := pod.Lacks(on); lacks != "" {
		return errors.New(lacks)
	}
	if pod.Started.Before(written.Truncate(time.Second)) { // the kubelet reports whole seconds
		return fmt.Errorf("pod %s was started before its files were written", pod.Name)
	}
	return nil
}

func podOf(of *corev1.Pod) Pod {
	pod := Pod{Name: of.Name, Version: "0"}
	if version, set := of.Annotations[FileVersionAnnotation]; set {
		pod.Version = version
	}
	if len(of.Spec.Containers) > 0 {
		pod.Image = of.Spec.Containers[0].Image
	}
	for _, status := range of.Status.ContainerStatuses {
		if runs := status.State.Running; status.Name == container && runs != nil && of.DeletionTimestamp == nil {
			pod.Runs, pod.Started = true, runs.StartedAt.UTC()
		}
	}
	return pod
}

// logLines is the number of lines that are read of the end of a log. A longer text would be cut off at its end, where
// the needed lines are: each line about a server names the configuration with which HAProxy runs.
const logLines = 300

// Log implements [Running].
func (c *Client) Log(ctx context.Context, pod Pod) (string, error) {
	log, err := c.logs.PodLog(ctx, Namespace, pod.Name, logLines)
	if err != nil {
		return "", fmt.Errorf("read the log of pod %s/%s: %w", Namespace, pod.Name, kube.NamePermission(err, "get", "pods/log"))
	}
	return log, nil
}

// Reload implements [Running].
func (c *Client) Reload(ctx context.Context, pod Pod) error {
	in := podexec.Pod{Namespace: Namespace, Name: pod.Name, Container: container}
	_, stderr, code, err := c.exec.Exec(ctx, in, []string{"/bin/kill", "-HUP", "1"})
	switch {
	case err != nil:
		return fmt.Errorf("reload HAProxy of pod %s/%s: %w", Namespace, pod.Name, kube.NamePermission(err, "create", "pods/exec"))
	case code != 0:
		return fmt.Errorf("reload HAProxy of pod %s/%s: /bin/kill ended with %d: %s", Namespace, pod.Name, code, strings.TrimSpace(string(stderr)))
	}
	return nil
}

// reachTimeout is the timeout of a request to an API server.
const reachTimeout = 5 * time.Second

// Serves implements [Running]. It repeats a failed request once, because an answer may be lost.
func (c *Client) Serves(ctx context.Context, address string) (names []string, err error) {
	if names, err = c.servesOnce(ctx, address); err != nil {
		names, err = c.servesOnce(ctx, address)
	}
	return names, err
}

// servesTimeout is shorter than [reachTimeout], because the caller asks many API servers.
const servesTimeout = 2 * time.Second

func (c *Client) servesOnce(ctx context.Context, address string) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, servesTimeout)
	defer cancel()
	_, names, err = c.ask(ctx, address, c.apiPort, "/readyz")
	return names, err
}

// Refuses implements [Running].
func (c *Client) Refuses(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, servesTimeout)
	defer cancel()
	status, _, err := c.ask(ctx, address, c.apiPort, "/healthz")
	return err == nil && (status == http.StatusUnauthorized || status == http.StatusForbidden)
}

// Reach implements [Running].
func (c *Client) Reach(ctx context.Context, address string) (status int, err error) {
	status, _, err = c.ask(ctx, address, c.port, "/healthz")
	return status, err
}

// ask sends an anonymous request. It returns an error unless the status shows that the API server is ready. The
// cluster's CA must have signed the server's certificate, but the certificate may have any names, because the address
// is the address of a node. ask follows no redirect, so that it returns the names of this server.
func (c *Client) ask(ctx context.Context, address string, port int, path string) (status int, names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	at := url.URL{Scheme: "https", Host: net.JoinHostPort(address, strconv.Itoa(port)), Path: path}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection checks the certificate, but not its names
		VerifyConnection:   c.verify,
	}}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := (&http.Client{Transport: transport, CheckRedirect: stay}).Do(request)
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	err = errors.Join(err, response.Body.Close())
	if err == nil && !answers.MatchString(strconv.Itoa(response.StatusCode)) {
		err = fmt.Errorf("%s answers %s", at.String(), response.Status)
	}
	return response.StatusCode, response.TLS.PeerCertificates[0].DNSNames, err
}
