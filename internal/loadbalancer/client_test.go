package loadbalancer

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/podexec"
)

var podRef = kube.Ref{Version: "v1", Resource: "pods", Namespace: Namespace, Name: "haproxy-a"}

func TestThePodOfANode(t *testing.T) {
	for content, want := range map[string]Pod{
		`{"metadata":{"name":"haproxy-a","annotations":{"kurl.sh/haproxy-fileversion":"3"}},"spec":{"containers":[{"name":"haproxy","image":"haproxy:2"}]},
			"status":{"containerStatuses":[{"name":"haproxy","state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}}}]}}`: {"haproxy-a", "haproxy:2", "3", true, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		`{"metadata":{"name":"haproxy-a"},"spec":{"containers":[{"name":"haproxy","image":"haproxy:2"}]},
			"status":{"containerStatuses":[{"name":"haproxy","state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}`: {Name: "haproxy-a", Image: "haproxy:2", Version: "0"},
		// Another container runs; the pod is being deleted.
		`{"metadata":{"name":"haproxy-a"},"spec":{"containers":[{"name":"haproxy","image":"haproxy:2"}]},
			"status":{"containerStatuses":[{"name":"other","state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}}},{"name":"haproxy","state":{}}]}}`: {Name: "haproxy-a", Image: "haproxy:2", Version: "0"},
		`{"metadata":{"name":"haproxy-a","deletionTimestamp":"2026-01-02T03:04:05Z"},"spec":{"containers":[{"name":"haproxy","image":"haproxy:2"}]},
			"status":{"containerStatuses":[{"name":"haproxy","state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}}}]}}`: {Name: "haproxy-a", Image: "haproxy:2", Version: "0"},
		`{"metadata":{"name":"haproxy-a"}}`: {Name: "haproxy-a", Version: "0"},
	} {
		objects := kubesim.NewObjects()
		objects.Put(podRef, content)
		if pod, err := NewClient(objects, nil, nil, nil).Pod(t.Context(), "a"); err != nil || pod != want {
			t.Errorf("%+v, %v, want %+v", pod, err, want)
		}
		if _, err := NewClient(objects, nil, nil, nil).Pod(t.Context(), "b"); !errors.Is(err, kube.ErrNotFound) || !strings.Contains(err.Error(), "kube-system/haproxy-b") {
			t.Error(err)
		}
		objects.Forbid("get pods")
		if _, err := NewClient(objects, nil, nil, nil).Pod(t.Context(), "a"); !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), "lacks the permission to get pods") {
			t.Error(err)
		}
	}
}

// execs runs programs in pods.
type execs func(pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error)

func (e execs) Exec(_ context.Context, pod podexec.Pod, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	return e(pod, argv)
}

func TestThePodsOfAllNodes(t *testing.T) {
	objects := kubesim.NewObjects()
	for name, content := range map[string]string{
		"haproxy-a": `{"metadata":{"name":"haproxy-a","labels":{"app":"kurl-haproxy"}},"spec":{"nodeName":"a"}}`,
		"other":     `{"metadata":{"name":"other","labels":{"app":"kurl-haproxy"}},"spec":{"nodeName":"b"}}`,
		"haproxy-c": `{"metadata":{"name":"haproxy-c"},"spec":{"nodeName":"c"}}`,
	} {
		objects.Put(kube.Ref{Version: "v1", Resource: "pods", Namespace: Namespace, Name: name}, content)
	}
	pods, err := NewClient(objects, nil, nil, nil).Pods(t.Context())
	if diff := cmp.Diff(map[string]Pod{"a": {Name: "haproxy-a", Version: "0"}}, pods); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	objects.Forbid("list pods")
	if _, err := NewClient(objects, nil, nil, nil).Pods(t.Context()); !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), "lacks the permission to list pods") {
		t.Error(err)
	}
}

func TestHAProxyIsToldBySIGHUP(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		err  error
		want string
	}{
		"told": {}, "no such program": {code: 126, want: "reload HAProxy of pod kube-system/haproxy-a: /bin/kill ended with 126: not found"},
		"forbidden": {err: kube.ErrForbidden, want: "lacks the permission to create pods/exec"},
	} {
		told := ""
		client := NewClient(nil, nil, execs(func(pod podexec.Pod, argv []string) ([]byte, []byte, int, error) {
			told = strings.Join(append([]string{pod.Namespace, pod.Name, pod.Container}, argv...), " ")
			return nil, []byte("not found\n"), test.code, test.err
		}), nil)
		err := client.Reload(t.Context(), Pod{Name: "haproxy-a"})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if told != "kube-system haproxy-a haproxy /bin/kill -HUP 1" {
			t.Errorf("%s: it ran %s", name, told)
		}
	}
}

func TestAnAPIServerOfTheClusterIsReachedByAnyName(t *testing.T) {
	answer := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("it asks for %s", r.URL)
		}
		w.Header().Set("Location", "http://"+r.Host)
		w.WriteHeader(answer)
		_, _ = io.WriteString(w, "ok")
	}))
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(nil, nil, nil, authorityOf(server))
	if client.port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	client.apiPort = client.port
	for _, answer = range []int{200, 401, 403, 429} {
		if status, err := client.Reach(t.Context(), host); err != nil || status != answer {
			t.Errorf("%d: %v", status, err)
		}
		if refuses := client.Refuses(t.Context(), host); refuses != (answer == 401 || answer == 403) {
			t.Errorf("%d: it refuses anonymous requests: %t", answer, refuses)
		}
	}
	for _, answer = range []int{302, 404, 500, 503} {
		if _, err := client.Reach(t.Context(), host); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("/healthz answers %d", answer)) {
			t.Error(err)
		}
	}
	if _, err := client.Reach(t.Context(), "127.0.0.2"); err == nil { // on the port that the server keeps at another address
		t.Error("nobody is there")
	}
}

// authorityOf has signed the certificate of a server.
func authorityOf(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

func TestAnAPIServerOfAnotherClusterIsNone(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	client := NewClient(nil, nil, nil, x509.NewCertPool())
	if client.port, err = strconv.Atoi(port); err != nil {
		t.Fatal(err)
	}
	client.apiPort = client.port
	unknown := new(x509.UnknownAuthorityError)
	if _, err := client.Reach(t.Context(), host); !errors.As(err, unknown) {
		t.Errorf("reached: %v", err)
	}
	if _, err := client.Serves(t.Context(), host); !errors.As(err, unknown) {
		t.Errorf("serves: %v", err)
	}
	client.authority = authorityOf(server)
	if names, err := client.Serves(t.Context(), host); err != nil || !slices.Equal(names, server.Certificate().DNSNames) || len(names) == 0 {
		t.Errorf("%v, %q", err, names)
	}
}

type logs struct{ err error }

func (l logs) PodLog(_ context.Context, namespace, name string, _ int64) (string, error) {
	return namespace + "/" + name + "\n", l.err
}

func TestTheLogTellsWhichConfigurationHAProxyRunsWith(t *testing.T) {
	if log, err := NewClient(nil, logs{}, nil, nil).Log(t.Context(), Pod{Name: "haproxy-a"}); err != nil || log != "kube-system/haproxy-a\n" {
		t.Errorf("%q, %v", log, err)
	}
	if _, err := NewClient(nil, logs{kube.ErrForbidden}, nil, nil).Log(t.Context(), Pod{Name: "haproxy-a"}); err == nil || !strings.Contains(err.Error(), "lacks the permission to get pods/log") {
		t.Error(err)
	}
	line := "Health check for server kubernetes-primaries-0123456789/k8s-primary-0 succeeded, reason: Layer7 check passed\n"
	for backend, want := range map[string]bool{"kubernetes-primaries-0123456789": true, "kubernetes-primaries-012345678": false, "primaries-0123456789": false} {
		if RunsWith(line, backend) != want {
			t.Errorf("it runs with %s: %v", backend, !want)
		}
	}
	// What it ran with before says nothing, also if it is to run with that again.
	line += "[WARNING] (8) : Server kubernetes-primaries-other/k8s-primary-0 is DOWN\nProxy kubernetes-primaries-0123456789 stopped (cumulated conns: FE: 0, BE: 0).\n"
	if RunsWith(line, "kubernetes-primaries-0123456789") || !RunsWith(line, "kubernetes-primaries-other") || RunsWith("", "x") {
		t.Error("the last line about a server does not decide")
	}
}
