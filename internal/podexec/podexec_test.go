package podexec

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec/podexectest"
)

var readOnly = kube.Terms{ReadOnly: true}

// server is an API server of which nothing is asked but an exec.
type server struct {
	*httptest.Server
	t    *testing.T
	exec http.HandlerFunc
}

func newServer(t *testing.T) (*server, *Client) {
	t.Helper()
	s := &server{t: t}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.exec(w, r) }))
	t.Cleanup(s.Close)
	return s, s.bound(kube.Terms{})
}

func (s *server) bound(terms kube.Terms) *Client {
	s.t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	s.t.Cleanup(transport.CloseIdleConnections)
	config := &rest.Config{Host: s.URL, Transport: transport}
	terms.Bind(config)
	client, err := New(config, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// The heartbeat of client-go's WebSocket ends at its first beat, up to 5 s after
// the connection was closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

var toolsPod = Pod{Namespace: "rook-ceph", Name: "tools", Container: "rook-ceph-tools"}

func TestAnExecKeepsOutputAndExitCodeOverEitherProtocol(t *testing.T) {
	argv := []string{"ceph", "osd", "crush", "rm", "a b", "--flag", "$(x)", "ü&c=d"}
	run := func(exitCode int) podexectest.Program {
		return func(got []string) (string, string, int) {
			if !slices.Equal(got, argv) {
				t.Errorf("ran %q", got)
			}
			return "out", "err", exitCode
		}
	}
	for _, exitCode := range []int{0, 2, 39, 124} {
		for name, exec := range map[string]http.HandlerFunc{
			"WebSocket":                          podexectest.OverWebSocket(t, run(exitCode)),
			"SPDY where create alone is granted": podexectest.ByMethod(podexectest.Forbidden, podexectest.OverSPDY(t, run(exitCode))),
		} {
			t.Run(name+" "+strconv.Itoa(exitCode), func(t *testing.T) {
				s, client := newServer(t)
				s.exec = exec
				stdout, stderr, got, err := client.Exec(t.Context(), toolsPod, argv)
				if err != nil || got != exitCode || string(stdout) != "out" || string(stderr) != "err" {
					t.Errorf("%q, %q, %d, %v", stdout, stderr, got, err)
				}
			})
		}
	}
}

func TestARefusedWebSocketIsNotTriedAgainForTenMinutes(t *testing.T) {
	s, client := newServer(t)
	now := time.Now()
	client.refusal.now = func() time.Time { return now }
	run := func([]string) (string, string, int) { return "", "", 0 }
	var methods []string
	counted := func(handler http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { methods = append(methods, r.Method); handler(w, r) }
	}
	s.exec = counted(podexectest.ByMethod(podexectest.Forbidden, podexectest.OverSPDY(t, run)))
	exec := func() error {
		_, _, _, err := client.Exec(t.Context(), toolsPod, []string{"ceph"})
		return err
	}
	for range 3 {
		if err := exec(); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(10*time.Minute - time.Second)
	for range 2 {
		if err := exec(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	if want := []string{"GET", "POST", "POST", "POST", "POST", "GET", "POST"}; !slices.Equal(methods, want) {
		t.Errorf("asked by %q, want %q", methods, want)
	}
	// The API server changes its mind: the first exec fails, the next one does not.
	s.exec = podexectest.ByMethod(podexectest.OverWebSocket(t, run), podexectest.Forbidden)
	if err := exec(); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("with SPDY refused: %v", err)
	}
	if err := exec(); err != nil {
		t.Errorf("a WebSocket is not tried again: %v", err)
	}
}

func TestAnExecNamesItsPodAndContainer(t *testing.T) {
	s, client := newServer(t)
	var path, container string
	served := podexectest.OverWebSocket(t, func([]string) (string, string, int) { return "", "", 0 })
	s.exec = func(w http.ResponseWriter, r *http.Request) {
		path, container = r.URL.Path, r.URL.Query().Get("container")
		served(w, r)
	}
	if _, _, _, err := client.Exec(t.Context(), toolsPod, []string{"true"}); err != nil {
		t.Fatal(err)
	}
	if path != "/api/v1/namespaces/rook-ceph/pods/tools/exec" || container != "rook-ceph-tools" {
		t.Errorf("asked for %s, container %s", path, container)
	}
}

func TestAnExecEndsWithItsContext(t *testing.T) {
	s, client := newServer(t)
	s.exec = podexectest.OverWebSocket(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, _, err := client.Exec(ctx, toolsPod, []string{"ceph", "pg", "stat"})
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

func TestAnExecThatIsRefusedSaysWhichPermissionIsMissing(t *testing.T) {
	s, client := newServer(t)
	s.exec = podexectest.Forbidden
	_, _, _, err := client.Exec(t.Context(), toolsPod, []string{"ceph"})
	if !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), `needs verb "create" on pods/exec in namespace rook-ceph`) {
		t.Errorf("got %v", err)
	}
}

func TestAProgramInAPodAnswersWhileItIsTalkedWithOverEitherProtocol(t *testing.T) {
	for name, exec := range map[string]http.HandlerFunc{
		"WebSocket": podexectest.ShoutsOverWebSocket(t), "SPDY where create alone is granted": podexectest.ByMethod(podexectest.Forbidden, podexectest.ShoutsOverSPDY(t)),
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t)
			s.exec = exec
			stdin, input := io.Pipe()
			out := podexectest.NewHeard()
			type end struct {
				code int
				err  error
			}
			ended := make(chan end, 1)
			go func() {
				code, err := client.Interact(t.Context(), toolsPod, []string{"ceph"}, stdin, out, io.Discard)
				ended <- end{code, err}
			}()
			for _, line := range []string{"a\n", "a\nb\n"} {
				if _, err := io.WriteString(input, line[len(line)-2:]); err != nil {
					t.Fatal(err)
				}
				out.Await(t, strings.ToUpper(line))
			}
			_ = input.Close()
			if got := <-ended; got.code != 3 || got.err != nil {
				t.Errorf("it ended with %d, %v, want 3", got.code, got.err)
			}
		})
	}
}

func TestTalkingEndsWithItsContext(t *testing.T) {
	s, client := newServer(t)
	s.exec = podexectest.OverWebSocket(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stdin, input := io.Pipe()
	defer input.Close()
	if _, err := client.Interact(ctx, toolsPod, []string{"ceph"}, stdin, io.Discard, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAClientThatOnlyReadsTalksWithNoProgramOfWhichNobodySaysThatItIsAQuestion(t *testing.T) {
	for name, serve := range podexectest.Protocols {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t)
			s.exec = serve(t, func(argv []string) (string, string, int) {
				t.Errorf("%q was run", argv)
				return "", "", 0
			})
			client := s.bound(readOnly)
			if name == "SPDY" {
				client.refusal.remember()
			}
			_, err := client.Interact(t.Context(), toolsPod, []string{"ceph"}, strings.NewReader("osd out 1\n"), io.Discard, io.Discard)
			if !errors.Is(err, kube.ErrReadOnly) {
				t.Errorf("%v, want ErrReadOnly", err)
			}
		})
	}
}

func TestAClientThatOnlyReadsRunsProgramsThatAreQuestionsOverEitherProtocol(t *testing.T) {
	for name, serve := range podexectest.Protocols {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t)
			s.exec = serve(t, func([]string) (string, string, int) { return "out", "", 0 })
			stdout, _, _, err := s.bound(readOnly).Exec(kube.ReadsOnly(t.Context()), toolsPod, []string{"ceph", "status"})
			if err != nil || string(stdout) != "out" {
				t.Errorf("%q, %v", stdout, err)
			}
		})
	}
}

func TestAClientThatOnlyReadsRunsNoProgramOfWhichNobodySaysThatItIsAQuestion(t *testing.T) {
	for name, serve := range podexectest.Protocols {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t)
			s.exec = serve(t, func(argv []string) (string, string, int) {
				t.Errorf("%q was run", argv)
				return "", "", 0
			})
			client := s.bound(readOnly)
			if name == "SPDY" {
				client.refusal.remember()
			}
			_, _, _, err := client.Exec(t.Context(), toolsPod, []string{"ceph", "osd", "purge", "1"})
			if !errors.Is(err, kube.ErrReadOnly) || errors.Is(err, kube.ErrUnavailable) {
				t.Errorf("%v, want ErrReadOnly alone", err)
			}
		})
	}
}
