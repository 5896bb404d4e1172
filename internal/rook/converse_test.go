package rook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/kube"
)

var _ ceph.Conversing = Runner{}

// Both serve the exec of a program that shouts what it reads, and ends with exit code
// 3 at the end of its input. The channels are those of v5.channel.k8s.io.
func shoutsOverWebSocket(t *testing.T) http.HandlerFunc {
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

func shoutsOverSPDY(t *testing.T) http.HandlerFunc {
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

// heard is a writer that one can wait at.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newHeard() *heard { return &heard{more: make(chan struct{}, 100)} }

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p)
	h.more <- struct{}{}
	return len(p), nil
}

// await waits until all of the text was heard.
func (h *heard) await(t *testing.T, text string) {
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

func TestAProgramInAPodAnswersWhileItIsTalkedWithOverEitherProtocol(t *testing.T) {
	for name, exec := range map[string]http.HandlerFunc{
		"WebSocket": shoutsOverWebSocket(t), "SPDY where create alone is granted": byMethod(forbidden, shoutsOverSPDY(t)),
	} {
		t.Run(name, func(t *testing.T) {
			s, client := newServer(t, nil)
			s.exec = exec
			stdin, input := io.Pipe()
			out := newHeard()
			type end struct {
				code int
				err  error
			}
			ended := make(chan end, 1)
			go func() {
				code, err := client.Converse(t.Context(), toolsPod, []string{"ceph"}, stdin, out, io.Discard)
				ended <- end{code, err}
			}()
			for _, line := range []string{"a\n", "a\nb\n"} {
				if _, err := io.WriteString(input, line[len(line)-2:]); err != nil {
					t.Fatal(err)
				}
				out.await(t, strings.ToUpper(line))
			}
			_ = input.Close()
			if got := <-ended; got.code != 3 || got.err != nil {
				t.Errorf("it ended with %d, %v, want 3", got.code, got.err)
			}
		})
	}
}

func TestTalkingEndsWithItsContext(t *testing.T) {
	s, client := newServer(t, nil)
	s.exec = overWebSocket(t, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stdin, input := io.Pipe()
	defer input.Close()
	if _, err := client.Converse(ctx, toolsPod, []string{"ceph"}, stdin, io.Discard, io.Discard); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAClientThatOnlyReadsTalksWithNoProgramOfWhichNobodySaysThatItIsAQuestion(t *testing.T) {
	for name, serve := range protocols {
		t.Run(name, func(t *testing.T) {
			s, _ := newServer(t, nil)
			s.exec = serve(t, func(argv []string) (string, string, int) {
				t.Errorf("%q was run", argv)
				return "", "", 0
			})
			client := s.bound(readOnly, Options{})
			if name == "SPDY" {
				client.refusal.remember()
			}
			_, err := client.Converse(t.Context(), toolsPod, []string{"ceph"}, strings.NewReader("osd out 1\n"), io.Discard, io.Discard)
			if !errors.Is(err, kube.ErrReadOnly) {
				t.Errorf("%v, want ErrReadOnly", err)
			}
		})
	}
}

func TestTheRunnerTalksInThePodThatItNamesNow(t *testing.T) {
	at := podPath + "?app=rook-ceph-tools"
	s, client := newServer(t, map[string]string{
		clusterPath: emptyCluster, deploymentPath + "/rook-ceph-operator": operatorOf("rook/ceph:v1.10.8"), at: `{"items":[]}`,
	})
	runner := NewRunner(client)
	if _, err := runner.Where(t.Context()); !errors.Is(err, ErrNoToolsPod) {
		t.Errorf("without a pod: %v", err)
	}
	for _, name := range []string{"tools-1", "tools-2"} {
		s.mu.Lock()
		s.objects[at] = `{"items":[` + podOf(name, "2026-01-01T00:00:00Z", "Running", "True", "") + `]}`
		s.mu.Unlock()
		place, err := runner.Where(t.Context())
		if err != nil || place != name+"/rook-ceph-tools" {
			t.Errorf("it is %q, %v", place, err)
		}
		var path string
		served := shoutsOverWebSocket(t)
		s.exec = func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path; served(w, r) }
		out := newHeard()
		if code, err := runner.Converse(t.Context(), place, []string{"ceph"}, strings.NewReader("x"), out, io.Discard); code != 3 || err != nil {
			t.Errorf("%d, %v", code, err)
		}
		if out.await(t, "X"); path != podPath+"/"+name+"/exec" {
			t.Errorf("it talked with %s", path)
		}
	}
	if _, err := runner.Converse(t.Context(), "nowhere", []string{"ceph"}, strings.NewReader(""), io.Discard, io.Discard); err == nil {
		t.Error("it talked with nowhere")
	}
}
