package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	loadbalancertest "github.com/replicatedhq/ekco/test/loadbalancer"
)

// server is a real program that serves what is in a Secret, at the address of a pod that runs
// on no node.
type server struct {
	c                      *cluster
	namespace, app, secret string
	certificate, key       string
	address                string
	port                   int
	// run starts the program, which has the files of those names.
	run     func(certificate, key string) *child.Process
	process *child.Process
	pods    int
}

// at gives the server an address of its own.
func (s *server) at(port int) *server {
	s.port = port
	s.address = fmt.Sprintf("127.%d.%d.%d", 61+rand.IntN(60), rand.IntN(256), 1+rand.IntN(254))
	return s
}

func (s *server) endpoint() string { return fmt.Sprintf("%s:%d", s.address, s.port) }

// registry is Debian's docker-registry.
func (c *cluster) registry() *server {
	c.t.Helper()
	install := exec.Command("../registry/install.sh")
	install.Stderr = os.Stderr
	program, err := install.Output()
	if err != nil {
		c.t.Fatal(err)
	}
	s := (&server{c: c, namespace: "kurl", app: "registry", secret: "registry-pki", certificate: "registry.crt", key: "registry.key"}).at(443)
	s.run = func(certificate, key string) *child.Process {
		config := filepath.Join(filepath.Dir(certificate), "config.yml")
		c.write(config, fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {inmemory: {}}\nhttp: {addr: %q, tls: {certificate: %s, key: %s}}\n", s.endpoint(), certificate, key))
		return child.Start(c.t, strings.TrimSpace(string(program)), "serve", config)
	}
	return s
}

// proxy is an HAProxy in the place of a server of that app; options are those of where it listens.
func (c *cluster) proxy(namespace, app, secret string, port int, options string) *server {
	c.t.Helper()
	haproxies, err := loadbalancertest.Install(c.t.Context(), "../loadbalancer")
	if err != nil {
		c.t.Fatal(err)
	}
	s := (&server{c: c, namespace: namespace, app: app, secret: secret, certificate: "tls.crt", key: "tls.key"}).at(port)
	s.run = func(certificate, key string) *child.Process {
		dir := filepath.Dir(certificate)
		c.write(filepath.Join(dir, "both.pem"), c.read(certificate)+c.read(key))
		config := filepath.Join(dir, "haproxy.cfg")
		c.write(config, fmt.Sprintf(`defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend all
    bind %s ssl crt %s/both.pem %s
    http-request return status 200
`, s.endpoint(), dir, strings.ReplaceAll(options, "DIR", dir)))
		return child.Start(c.t, haproxies[0].Path, "-db", "-f", config)
	}
	return s
}

func (c *cluster) write(path, content string) {
	c.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) read(path string) string {
	c.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(content)
}

// data is what a Secret holds.
func (c *cluster) data(namespace, name string) map[string][]byte {
	c.t.Helper()
	secret, err := c.client.CoreV1().Secrets(namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return secret.Data
}

// start has the program serve what the Secret holds, in place of one that runs.
func (s *server) start() {
	s.c.t.Helper()
	if s.process != nil {
		s.process.Stop(await.HangTimeout)
	}
	dir := s.c.t.TempDir()
	for name, content := range s.c.data(s.namespace, s.secret) {
		s.c.write(filepath.Join(dir, name), string(content))
	}
	s.process = s.run(filepath.Join(dir, s.certificate), filepath.Join(dir, s.key))
	eventually(s.c.t, await.HangTimeout, s.app+" serves", func() (bool, string) {
		if !s.process.Running() {
			s.c.t.Fatalf("%s has ended:\n%s", s.app, s.process.Output.Tail(1000))
		}
		return s.served() != "", s.process.Output.Tail(500)
	})
}

// served is the certificate that openssl is served, as PEM.
func (s *server) served() string {
	output, _ := exec.Command("openssl", "s_client", "-connect", s.endpoint(), "-servername", s.app).Output() // it says why not by an empty answer
	_, after, found := strings.Cut(string(output), "-----BEGIN CERTIFICATE-----")
	body, _, ended := strings.Cut(after, "-----END CERTIFICATE-----")
	if !found || !ended {
		return ""
	}
	return "-----BEGIN CERTIFICATE-----" + body + "-----END CERTIFICATE-----\n"
}

// addPod adds the pod that is at the server's address.
func (s *server) addPod() (name string) {
	s.c.t.Helper()
	s.pods++
	pods, ctx := s.c.client.CoreV1().Pods(s.namespace), s.c.t.Context()
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", s.app, s.pods), Labels: map[string]string{"app": s.app}},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: s.app, Image: s.app + ":1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		s.c.t.Fatal(err)
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: s.address, PodIPs: []corev1.PodIP{{IP: s.address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		s.c.t.Fatal(err)
	}
	return pod.Name
}

// openssl returns what it says, and fails the test if that is an error.
func openssl(t *testing.T, args ...string) string {
	t.Helper()
	output, err := exec.Command("openssl", args...).CombinedOutput()
	if err != nil {
		t.Errorf("openssl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}
