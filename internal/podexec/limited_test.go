package podexec

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/replicatedhq/ekco/internal/podexec/podexectest"
)

// flood serves the exec of a program that writes so many KiB, and never ends.
type flood struct {
	stdout, stderr int
}

func (f flood) content() map[string][]byte {
	return map[string][]byte{"stdout": make([]byte, f.stdout<<10), "stderr": make([]byte, f.stderr<<10)}
}

// chunk is how much is written at once: the reader may go away at any moment.
const chunk = 16 << 10

func (f flood) viaWebSocket(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		connection, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Errorf("upgrade: %v", err)
			return
		}
		defer connection.Close()
		for channel, name := range map[byte]string{1: "stdout", 2: "stderr"} {
			for part := range slices.Chunk(f.content()[name], chunk) {
				if connection.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, part...)) != nil {
					return
				}
			}
		}
		_, _, _ = connection.ReadMessage() // until the client goes away
	}
}

func (f flood) viaSPDY(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
			t.Errorf("handshake: %v", err)
			return
		}
		streams := make(chan httpstream.Stream, 3)
		// As in a kubelet: who writes before the client has heard that all its streams
		// are there fills the client's queue, behind which it waits to hear it.
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replied <-chan struct{}) error {
			go func() {
				<-replied
				streams <- stream
			}()
			return nil
		})
		if connection == nil {
			return
		}
		defer connection.Close()
		// Until all streams are there nobody reads.
		for _, stream := range []httpstream.Stream{<-streams, <-streams, <-streams} {
			for part := range slices.Chunk(f.content()[stream.Headers().Get("streamType")], chunk) {
				if _, err := stream.Write(part); err != nil {
					return
				}
			}
		}
		<-connection.CloseChan()
	}
}

func TestAProgramThatWritesMoreThanIsKeptIsLeftAtOnce(t *testing.T) {
	for stream, test := range map[string]struct {
		flood
		want string
	}{
		"stdout": {flood{stdout: maxStdout + 16}, "ceph wrote too much: more than 8192 KiB to stdout"},
		"stderr": {flood{stderr: maxStderr + 16}, "ceph wrote too much: more than 64 KiB to stderr"},
	} {
		for protocol, exec := range map[string]http.HandlerFunc{
			"WebSocket": test.viaWebSocket(t), "SPDY": podexectest.ByMethod(podexectest.Forbidden, test.viaSPDY(t)),
		} {
			t.Run(stream+" over "+protocol, func(t *testing.T) {
				s, client := newServer(t)
				s.exec = exec
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, _, _, err := client.Exec(ctx, toolsPod, []string{"ceph"})
				if err == nil || !strings.Contains(err.Error(), test.want) || ctx.Err() != nil {
					t.Errorf("got %v, its own deadline: %v", err, ctx.Err())
				}
			})
		}
	}
}

func TestAsMuchAsIsKeptIsKept(t *testing.T) {
	stdout, stderr := strings.Repeat("o", maxStdout<<10), strings.Repeat("e", maxStderr<<10)
	s, client := newServer(t)
	s.exec = podexectest.OverWebSocket(t, func([]string) (string, string, int) { return stdout, stderr, 0 })
	gotOut, gotErr, _, err := client.Exec(t.Context(), toolsPod, []string{"ceph"})
	if err != nil || string(gotOut) != stdout || string(gotErr) != stderr {
		t.Errorf("%d and %d bytes, %v", len(gotOut), len(gotErr), err)
	}
}
