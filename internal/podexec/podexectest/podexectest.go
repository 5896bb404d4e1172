// Package podexectest serves execs as API servers do.
package podexectest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Program simulates a program in a pod.
type Program func(argv []string) (stdout, stderr string, exitCode int)

// status is the final message of an exec, as the kubelet writes it.
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

// OverWebSocket serves an exec like API servers since Kubernetes 1.30. A nil program never ends.
func OverWebSocket(t *testing.T, run Program) http.HandlerFunc {
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

// OverSPDY serves an exec as old API servers do.
func OverSPDY(t *testing.T, run Program) http.HandlerFunc {
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

// ByMethod serves WebSockets, which begin with GET, and SPDY differently.
func ByMethod(get, post http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			get(w, r)
			return
		}
		post(w, r)
	}
}

// Forbidden refuses the request.
func Forbidden(w http.ResponseWriter, _ *http.Request) {
	Refuse(w, http.StatusForbidden, `User "ekco" cannot get resource "pods/exec"`)
}

// ShoutsOverWebSocket serves the exec of a program that returns its input in upper case, and ends with exit
// code 3 at the end of its input. The channels are those of v5.channel.k8s.io.
func ShoutsOverWebSocket(t *testing.T) http.HandlerFunc {
	const stdin, stdout, last, closed = 0, 1, 3, 255
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("stdin") != "true" {
			t.Errorf("asked for %s, without stdin", r.URL)
		}
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		defer connection.Close()
		for {
			_, message, err := connection.ReadMessage()
			if err != nil {
				return
			}
			switch message[0] {
			case stdin:
				_ = connection.WriteMessage(websocket.BinaryMessage, append([]byte{stdout}, strings.ToUpper(string(message[1:]))...))
			case closed:
				_ = connection.WriteMessage(websocket.BinaryMessage, append([]byte{last}, status(3)...))
				_ = connection.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
			}
		}
	}
}

// ShoutsOverSPDY serves the same over SPDY.
func ShoutsOverSPDY(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
			t.Errorf("handshake: %v", err)
			return
		}
		streams := make(chan httpstream.Stream, 4)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
			streams <- stream
			return nil
		})
		if connection == nil {
			return
		}
		defer connection.Close()
		named := make(map[string]httpstream.Stream)
		for range 4 {
			stream := <-streams
			named[stream.Headers().Get("streamType")] = stream
		}
		buffer := make([]byte, 1<<10)
		for {
			n, err := named["stdin"].Read(buffer)
			_, _ = named["stdout"].Write([]byte(strings.ToUpper(string(buffer[:n]))))
			if err != nil {
				break
			}
		}
		_, _ = named["error"].Write(status(3))
		for _, name := range []string{"stdout", "stderr", "error"} {
			_ = named[name].Close()
		}
		<-connection.CloseChan()
	}
}

// Heard is a writer whose content a test can wait for.
type Heard struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

// NewHeard returns a Heard to which nothing was written yet.
func NewHeard() *Heard { return &Heard{more: make(chan struct{}, 100)} }

// Write implements [io.Writer].
func (h *Heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p)
	h.more <- struct{}{}
	return len(p), nil
}

// Await waits until exactly this text was written.
func (h *Heard) Await(t *testing.T, text string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		h.mu.Lock()
		got := h.text.String()
		h.mu.Unlock()
		if got == text {
			return
		}
		select {
		case <-h.more:
		case <-late:
			t.Fatalf("heard %q, want %q", got, text)
		}
	}
}

var reasons = map[int]string{http.StatusNotFound: "NotFound", http.StatusForbidden: "Forbidden"}

// Refuse answers as an API server does.
func Refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure",
		"message": message, "reason": reasons[code], "code": code,
	})
}

// Protocols are the protocols of an exec.
var Protocols = map[string]func(*testing.T, Program) http.HandlerFunc{
	"WebSocket": OverWebSocket,
	"SPDY":      func(t *testing.T, run Program) http.HandlerFunc { return ByMethod(Forbidden, OverSPDY(t, run)) },
}
