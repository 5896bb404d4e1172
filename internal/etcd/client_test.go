package etcd_test

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
	"github.com/replicatedhq/ekco/test/etcd/pki"
)

// certificates writes kubeadm's certificates into a new directory.
func certificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	authority, err := pki.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.WriteClient(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnEndpointThatIsNoneIsRefused(t *testing.T) {
	for _, endpoints := range [][]string{nil, {"10.0.0.1:2379"}, {"http://10.0.0.1:2379"}, {"https://10.0.0.1"}, {"https://:2379"}, {"https://a b:1"}} {
		if _, err := etcd.NewClient(endpoints, etcd.Options{}); err == nil {
			t.Errorf("%q was accepted", endpoints)
		}
	}
}

func TestACertificateFileThatIsMissingOrRottenIsNamed(t *testing.T) {
	for _, name := range []string{"etcd/ca.crt", "etcd/healthcheck-client.crt", "etcd/healthcheck-client.key"} {
		for what, harm := range map[string]func(path string) error{
			"missing": os.Remove,
			"rotten":  func(path string) error { return os.WriteFile(path, []byte("rotten"), 0o600) },
		} {
			t.Run(what+" "+filepath.Base(name), func(t *testing.T) {
				dir := certificates(t)
				path := filepath.Join(dir, name)
				if err := harm(path); err != nil {
					t.Fatal(err)
				}
				client, err := etcd.NewClient([]string{"https://127.0.0.1:1"}, etcd.Options{CertificatesDir: dir})
				if err != nil {
					t.Fatal(err)
				}
				_, err = client.Members(t.Context())
				if !errors.Is(err, etcd.ErrCertificates) || !strings.Contains(err.Error(), path) {
					t.Errorf("error is %v; it should name %s", err, path)
				}
				if err := client.RemoveMember(t.Context(), 1); !errors.Is(err, etcd.ErrCertificates) {
					t.Errorf("error of a removal is %v", err)
				}
				health := client.Health(t.Context(), []etcd.Member{{ID: 1, Name: "a", ClientURLs: []string{"https://127.0.0.1:1"}}})
				if health[0].Healthy || !strings.Contains(health[0].Error, path) {
					t.Errorf("health is %+v", health[0])
				}
			})
		}
	}
}

// silent accepts connections and never says anything.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "https://" + listener.Addr().String()
}

// patience is how long a silent endpoint is waited for: much longer than another takes to refuse.
const patience = 2 * time.Second

func TestEndpointsThatRefuseOrAreSilentAreAllNamed(t *testing.T) {
	t.Parallel()
	mute := silent(t)
	client, err := etcd.NewClient([]string{"https://127.0.0.1:1", mute}, etcd.Options{
		CertificatesDir: certificates(t), CallTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Members(t.Context())
	if !errors.Is(err, etcd.ErrUnavailable) {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{"https://127.0.0.1:1: ", "connection refused", mute + ": ", "no answer in time"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%q has several lines", err)
	}
}

func TestASilentEndpointIsUnhealthyAfterTheHealthTimeout(t *testing.T) {
	t.Parallel()
	client, err := etcd.NewClient([]string{"https://127.0.0.1:1"}, etcd.Options{
		CertificatesDir: certificates(t), HealthTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	mute := silent(t)
	health := client.Health(t.Context(), []etcd.Member{
		{ID: 1, Name: "a", ClientURLs: []string{mute, "https://127.0.0.1:1"}}, {ID: 2},
	})
	if len(health) != 3 {
		t.Fatalf("health is %+v", health)
	}
	for i, want := range []string{"no answer in time", "connection refused", "never started"} {
		if health[i].Healthy || !strings.Contains(health[i].Error, want) {
			t.Errorf("entry %d is %+v, want %q", i, health[i], want)
		}
	}
}

func TestACallEndsWithItsContextAndSaysSo(t *testing.T) {
	client, err := etcd.NewClient([]string{silent(t)}, etcd.Options{
		CertificatesDir: certificates(t), CallTimeout: time.Hour, TotalTimeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Members(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
}

func TestWhatCallsTookIsToldWithTheirErrors(t *testing.T) {
	report := make(map[string]error)
	client, err := etcd.NewClient([]string{"https://127.0.0.1:1"}, etcd.Options{
		CertificatesDir: certificates(t), OnCall: func(kind string, _ time.Duration, err error) { report[kind] = err },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, membersErr := client.Members(t.Context())
	removeErr := client.RemoveMember(t.Context(), 1)
	client.Health(t.Context(), []etcd.Member{{ID: 1, ClientURLs: []string{"https://127.0.0.1:1"}}})
	if health, ok := report["health"]; len(report) != 3 || !ok || health != nil {
		t.Errorf("told of %v", report)
	}
	if membersErr == nil || removeErr == nil || !errors.Is(report["members"], membersErr) || !errors.Is(report["remove-member"], removeErr) {
		t.Errorf("told of %v, want %v and %v", report, membersErr, removeErr)
	}
}

func TestAClientThatOnlyReadsRemovesNoMember(t *testing.T) {
	client, err := etcd.NewClient([]string{"https://127.0.0.1:1"}, etcd.Options{CertificatesDir: certificates(t), ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveMember(t.Context(), 1); !errors.Is(err, etcd.ErrReadOnly) || errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("a removal: %v, want ErrReadOnly alone", err)
	}
	if _, err := client.Members(t.Context()); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("a question: %v, want that it is asked", err)
	}
}
