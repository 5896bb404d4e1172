package etcdtest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/etcd/pki"
)

func TestADeadOrSilentEndpointAmongTheGivenOnesCostsNothing(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a", "b", "c")
	c.Kill("c")
	c.WaitHealthy("a", "b")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	endpoints := append([]string{"https://" + listener.Addr().String()}, c.Endpoints("c", "a", "b")...)
	// A call that waited for the silent endpoint would last an hour.
	options := etcd.Options{CertificatesDir: c.CertificatesDir(), CallTimeout: time.Hour, TotalTimeout: time.Hour}
	client, err := etcd.NewClient(endpoints, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.HangTimeout)
	defer cancel()
	members, err := client.Members(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveMember(ctx, c.idOf(members, "c")); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesOfAnotherAuthorityAreRefusedAndTheEndpointIsNamed(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a")
	other, err := pki.New()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := other.WriteClient(dir); err != nil {
		t.Fatal(err)
	}
	client, err := etcd.NewClient(c.Endpoints("a"), etcd.Options{CertificatesDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	wantRefusal := func(says string) {
		t.Helper()
		_, err := client.Members(t.Context())
		if !errors.Is(err, etcd.ErrUnavailable) || !strings.Contains(err.Error(), c.Endpoints("a")[0]) || !strings.Contains(err.Error(), says) {
			t.Errorf("error is %v; it should say %q", err, says)
		}
	}
	wantRefusal("certificate signed by unknown authority")
	// With the right authority the server refuses the client instead.
	copyFile(t, filepath.Join(c.CertificatesDir(), "etcd/ca.crt"), filepath.Join(dir, "etcd/ca.crt"))
	wantRefusal("tls: ")
	// The client reads rotated certificates by itself.
	for _, name := range []string{"etcd/healthcheck-client.crt", "etcd/healthcheck-client.key"} {
		copyFile(t, filepath.Join(c.CertificatesDir(), name), filepath.Join(dir, name))
	}
	if members, err := client.Members(t.Context()); err != nil || len(members) != 1 {
		t.Errorf("members %v, %v", members, err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
