package rook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
)

// The Runner is what runs ceph in the pod.
var _ ceph.Runner = Runner{}

// program is what a pod does with a command.
type program func(argv []string) (stdout, stderr string, exitCode int)

// status is the last word of an exec, as kubelet writes it.
func status(exitCode int) []byte {
	said := map[string]any{"metadata": map[string]any{}, "status": "Success"}
	if exitCode != 0 {
		said = map[string]any{
			"metadata": map[string]any{}, "status": "Failure", "reason": "NonZeroExitCode",
			"message": "command terminated with non-zero exit code",
			"details": map[string]any{"causes": []any{
				map[string]any{"reason": "ExitCode", "message": strconv.Itoa(exitCode)},
			}},
		}
	}
	text, _ := json.Marshal(said) // it cannot fail
	return text
}

// overWebSocket serves an exec as API servers since Kubernetes 1.30 do. A
// program that is nil never ends.
func overWebSocket(t *testing.T, run program) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		defer connection.Close()
		if run == nil {
			_, _, _ = connection.ReadMessage() // until the client goes away
			return
		}
		stdout, stderr, exitCode := run(r.URL.Query()["command"])
		for channel, content := range map[byte][]byte{1: []byte(stdout), 2: []byte(stderr)} {
			if err := connection.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, content...)); err != nil {
				t.Errorf("write: %v", err)
			}
		}
		_ = connection.WriteMessage(websocket.BinaryMessage, append([]byte{3}, status(exitCode)...))
		_ = connection.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		_, _, _ = connection.ReadMessage()
	}
}

// overSPDY serves an exec as old API servers do.
func overSPDY(t *testing.T, run program) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
			t.Errorf("handshake: %v", err)
			return
		}
		streams := make(chan httpstream.Stream, 3)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
			streams <- stream
			return nil
		})
		if connection == nil {
			return
		}
		defer connection.Close()
		stdout, stderr, exitCode := run(r.URL.Query()["command"])
		for range 3 {
			stream := <-streams
			content := map[string][]byte{
				"stdout": []byte(stdout), "stderr": []byte(stderr), "error": status(exitCode),
			}[stream.Headers().Get("streamType")]
			if _, err := stream.Write(content); err != nil {
				t.Errorf("write: %v", err)
			}
			_ = stream.Close()
		}
		<-connection.CloseChan()
	}
}

// byMethod serves WebSockets, which begin with GET, and SPDY differently.
func byMethod(get, post http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			get(w, r)
			return
		}
		post(w, r)
	}
}

func forbidden(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusForbidden, `User "ekco" cannot get resource "pods/exec"`)
}

var toolsPod = Pod{Name: "tools", Container: "rook-ceph-tools"}

func TestAnExecKeepsOutputAndExitCodeOverEitherProtocol(t *testing.T) {
	argv := []string{"ceph", "osd", "crush", "rm", "a b", "--flag", "$(x)", "ü&c=d"}
	run := func(exitCode int) program {
		return func(got []string) (string, string, int) {
			if !slices.Equal(got, argv) {
				t.Errorf("ran %q", got)
			}
			return "out", "err", exitCode
		}
	}
	for _, exitCode := range []int{0, 2, 39, 124} {
		for name, exec := range map[string]http.HandlerFunc{
			"WebSocket":                          overWebSocket(t, run(exitCode)),
			"SPDY where create alone is granted": byMethod(forbidden, overSPDY(t, run(exitCode))),
		} {
			t.Run(name+" "+strconv.Itoa(exitCode), func(t *testing.T) {
				s, client := newServer(t, nil)
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
	s, client := newServer(t, nil)
	now := time.Now()
	client.refusal.now = func() time.Time { return now }
	run := func([]string) (string, string, int) { return "", "", 0 }
	var methods []string
	counted := func(handler http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { methods = append(methods, r.Method); handler(w, r) }
	}
	s.exec = counted(byMethod(forbidden, overSPDY(t, run)))
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
	s.exec = byMethod(overWebSocket(t, run), forbidden)
	if err := exec(); !errors.Is(err, kube.ErrForbidden) {
		t.Errorf("with SPDY refused: %v", err)
	}
	if err := exec(); err != nil {
		t.Errorf("a WebSocket is not tried again: %v", err)
	}
}

func TestAnExecNamesItsPodAndContainer(t *testing.T) {
	s, client := newServer(t, nil)
	var path, container string
	served := overWebSocket(t, func([]string) (string, string, int) { return "", "", 0 })
	s.exec = func(w http.ResponseWriter, r *http.Request) {
		path, container = r.URL.Path, r.URL.Query().Get("container")
		served(w, r)
	}
	if _, _, _, err := client.Exec(t.Context(), toolsPod, []string{"true"}); err != nil {
		t.Fatal(err)
	}
	if path != podPath+"/tools/exec" || container != "rook-ceph-tools" {
		t.Errorf("asked for %s, container %s", path, container)
	}
}

func TestAnExecEndsWithItsContext(t *testing.T) {
	s, client := newServer(t, nil)
	s.exec = overWebSocket(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, _, _, err := client.Exec(ctx, toolsPod, []string{"ceph", "pg", "stat"})
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

func TestAnExecThatIsRefusedSaysWhichPermissionIsMissing(t *testing.T) {
	s, client := newServer(t, nil)
	s.exec = forbidden
	_, _, _, err := client.Exec(t.Context(), toolsPod, []string{"ceph"})
	if !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), `needs verb "create" on pods/exec in namespace rook-ceph`) {
		t.Errorf("got %v", err)
	}
}

func TestCephIsUnavailableWithoutAToolsPodAndAnswersWithOne(t *testing.T) {
	s, client := newServer(t, map[string]string{
		clusterPath: emptyCluster, deploymentPath + "/rook-ceph-operator": operatorOf("rook/ceph:v1.10.8"),
		podPath + "?app=rook-ceph-tools": `{"items":[]}`,
	})
	s.exec = overWebSocket(t, func([]string) (string, string, int) {
		return "", "Error ENOTEMPTY: (39) Directory not empty", 39
	})
	api := ceph.New(NewRunner(client), ceph.Options{})
	err := api.CrushRemove(t.Context(), "w1")
	if !errors.Is(err, ceph.ErrUnavailable) || !errors.Is(err, ErrNoToolsPod) {
		t.Errorf("without a pod: %v", err)
	}
	s.mu.Lock()
	s.objects[podPath+"?app=rook-ceph-tools"] = `{"items":[` + podOf("tools", "2026-01-01T00:00:00Z", "Running", "True", "") + `]}`
	s.mu.Unlock()
	if err := api.CrushRemove(t.Context(), "w1"); !errors.Is(err, ceph.ErrHostNotEmpty) {
		t.Errorf("with a pod: %v", err)
	}
}
