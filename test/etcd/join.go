package etcdtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/replicatedhq/ekco/test/await"
)

// Joining is a member that the cluster expects but that has not started.
type Joining struct {
	cluster *Cluster
	name    string
	initial string
}

// Add announces a member for a new node to the cluster, through the member of node via. The member has no name before
// it starts.
func (c *Cluster) Add(via, name, ip string, learner bool) *Joining {
	c.t.Helper()
	c.prepare(name, ip)
	added := c.add(via, name, learner)
	var initial []string
	for _, m := range added.Members {
		if m.ID == added.Member.ID {
			m.Name = name
		}
		for _, peer := range m.PeerURLs {
			initial = append(initial, m.Name+"="+peer)
		}
	}
	return &Joining{cluster: c, name: name, initial: strings.Join(initial, ",")}
}

// add repeats the request while etcd refuses it, because etcd refuses until its members have been connected for 5 s.
func (c *Cluster) add(via, name string, learner bool) *clientv3.MemberAddResponse {
	c.t.Helper()
	client := c.raw(via)
	defer func() { _ = client.Close() }()
	add := client.MemberAdd
	if learner {
		add = client.MemberAddAsLearner
	}
	var added *clientv3.MemberAddResponse
	await.Until(c.t, await.HangTimeout, "a member for "+name+" is added", func() (bool, string) {
		ctx, cancel := context.WithTimeout(c.t.Context(), await.HangTimeout)
		defer cancel()
		response, err := add(ctx, []string{c.PeerURL(name)})
		if err != nil {
			return false, err.Error()
		}
		added = response
		return true, ""
	})
	return added
}

// Start starts the member, and waits until it is healthy.
func (j *Joining) Start(others ...string) {
	j.cluster.t.Helper()
	j.cluster.run(j.name, "existing", j.initial)
	j.cluster.WaitHealthy(append(others, j.name)...)
}

// FreeIP returns an address of the cluster's network that no node has.
func (c *Cluster) FreeIP() string { return c.network + "100" }

// Put writes a key through the member of a node.
func (c *Cluster) Put(via, key, value string) {
	c.t.Helper()
	client := c.raw(via)
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(c.t.Context(), await.HangTimeout)
	defer cancel()
	if _, err := client.Put(ctx, key, value); err != nil {
		c.t.Fatalf("write %s through %s: %v", key, via, err)
	}
}

// raw returns etcd's own client for one member.
func (c *Cluster) raw(name string) *clientv3.Client {
	c.t.Helper()
	read := func(file string) []byte {
		data, err := os.ReadFile(filepath.Join(c.CertificatesDir(), "etcd", file))
		if err != nil {
			c.t.Fatal(err)
		}
		return data
	}
	pair, err := tls.X509KeyPair(read("healthcheck-client.crt"), read("healthcheck-client.key"))
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read("ca.crt"))
	client, err := clientv3.New(clientv3.Config{
		Endpoints: c.Endpoints(name), Logger: zap.NewNop(),
		TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}
