package etcdtest

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	"github.com/replicatedhq/ekco/test/etcd/pki"
	"github.com/replicatedhq/ekco/test/loopback"
)

// Build builds the program that contains etcd, unless it is cached, and returns
// its path. dir is test/controlplane as seen from the working directory.
func Build(ctx context.Context, dir string) (string, error) {
	output, err := exec.CommandContext(ctx, filepath.Join(dir, "build.sh")).Output()
	if err != nil {
		return "", fmt.Errorf("build the program that contains etcd: %w", err)
	}
	return strings.TrimSpace(string(output)), nil
}

// Cluster is a real etcd cluster that ends with its test.
type Cluster struct {
	t         testing.TB
	program   string
	dir       string
	network   string
	authority *pki.Authority
	nodes     map[string]*node
	// relay is nil if clients connect to the members directly.
	relay *Relay
}

// node is a primary, with the address, files and process of its etcd member.
type node struct {
	name, ip, dir string
	process       *child.Process
}

// Start starts a cluster with one member for each name, and returns when all
// are healthy.
func Start(t testing.TB, program string, names ...string) *Cluster {
	t.Helper()
	return launch(t, program, nil, names...)
}

func launch(t testing.TB, program string, relay *Relay, names ...string) *Cluster {
	t.Helper()
	authority, err := pki.New()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		t: t, program: program, dir: t.TempDir(), authority: authority, nodes: make(map[string]*node), relay: relay,
		network: loopback.Network(),
	}
	if relay != nil {
		relay.cluster = c
		t.Cleanup(relay.close)
	}
	if err := authority.WriteClient(c.CertificatesDir()); err != nil {
		t.Fatal(err)
	}
	var initial []string
	for i, name := range names {
		c.prepare(name, fmt.Sprintf("%s%d", c.network, i+1))
		initial = append(initial, name+"="+c.PeerURL(name))
	}
	for _, name := range names {
		c.run(name, "new", strings.Join(initial, ","))
	}
	c.WaitHealthy(names...)
	return c
}

// prepare creates the files of a node that has no member yet.
func (c *Cluster) prepare(name, ip string) {
	c.t.Helper()
	n := &node{name: name, ip: ip, dir: filepath.Join(c.dir, name)}
	if err := c.authority.WriteServer(n.pki(), name, net.ParseIP(ip)); err != nil {
		c.t.Fatal(err)
	}
	c.nodes[name] = n
}

func (n *node) pki() string { return filepath.Join(n.dir, "pki") }

func (n *node) file(name string) string { return filepath.Join(n.pki(), "etcd", name) }

// run starts the member of a node with kubeadm's flags.
func (c *Cluster) run(name, state, initial string) {
	n := c.nodes[name]
	client, peer := "https://"+net.JoinHostPort(n.ip, "2379"), c.PeerURL(name)
	listen := client
	if c.relay != nil {
		listen = "https://" + net.JoinHostPort(n.ip, hiddenPort)
		c.relay.listen(c.t, n.ip)
	}
	n.process = child.Start(c.t, c.program, "etcd",
		"--name="+name, "--data-dir="+filepath.Join(n.dir, "data"),
		"--advertise-client-urls="+client, "--listen-client-urls="+listen,
		"--initial-advertise-peer-urls="+peer, "--listen-peer-urls="+peer,
		"--initial-cluster="+initial, "--initial-cluster-state="+state,
		"--cert-file="+n.file("server.crt"), "--key-file="+n.file("server.key"),
		"--client-cert-auth=true", "--trusted-ca-file="+n.file("ca.crt"),
		"--peer-cert-file="+n.file("peer.crt"), "--peer-key-file="+n.file("peer.key"),
		"--peer-client-cert-auth=true", "--peer-trusted-ca-file="+n.file("ca.crt"),
		"--snapshot-count=10000", "--log-level=warn", "--unsafe-no-fsync",
	)
}

// CertificatesDir returns the directory of a client's certificates, in kubeadm's layout.
func (c *Cluster) CertificatesDir() string { return filepath.Join(c.dir, "client") }

// IP returns the address of a node.
func (c *Cluster) IP(name string) string { return c.nodes[name].ip }

// PeerURL returns the peer URL of a node's member, in kubeadm's form.
func (c *Cluster) PeerURL(name string) string {
	return "https://" + net.JoinHostPort(c.IP(name), "2380")
}

// Endpoints returns the client URLs of the nodes' members.
func (c *Cluster) Endpoints(names ...string) []string {
	var endpoints []string
	for _, name := range names {
		endpoints = append(endpoints, "https://"+net.JoinHostPort(c.IP(name), "2379"))
	}
	return endpoints
}

// Client returns EKCO's client for the nodes' members.
func (c *Cluster) Client(names ...string) *etcd.Client {
	c.t.Helper()
	client, err := etcd.NewClient(c.Endpoints(names...), etcd.Options{
		CertificatesDir: c.CertificatesDir(), CallTimeout: await.HangTimeout, HealthTimeout: await.HangTimeout, TotalTimeout: await.HangTimeout,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// Kill kills the nodes' members, like a power failure.
func (c *Cluster) Kill(names ...string) {
	for _, name := range names {
		c.nodes[name].process.Kill()
	}
}

// WaitHealthy waits until the nodes' members are in the cluster and healthy.
func (c *Cluster) WaitHealthy(names ...string) {
	c.t.Helper()
	client := c.Client(names...)
	await.Until(c.t, await.HangTimeout, fmt.Sprintf("%v are healthy", names), func() (bool, string) {
		members, err := client.Members(c.t.Context())
		if err != nil {
			return false, err.Error()
		}
		healthy := make(map[string]bool)
		health := client.Health(c.t.Context(), members)
		for _, h := range health {
			healthy[h.Name] = h.Healthy
		}
		for _, name := range names {
			if !healthy[name] {
				return false, fmt.Sprintf("%+v", health)
			}
		}
		return true, ""
	})
}
