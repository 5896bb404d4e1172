package execserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// silentPeers connects peers that say nothing to a server whose connections
// linger for an hour. serving ends with the returned function.
func silentPeers(t *testing.T, count int) (server *http.Server, peers []net.Conn, end context.CancelFunc) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, end := context.WithCancel(t.Context())
	connected := make(chan struct{})
	server = &http.Server{
		ReadHeaderTimeout: time.Hour,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connected <- struct{}{}
			}
		},
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(watchingListener{listener, serving, time.Hour}) }()
	t.Cleanup(func() {
		end()
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	for range count {
		peer, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = peer.Close() })
		peers = append(peers, peer)
		<-connected
	}
	return server, peers, end
}

// endsSoon fails the test if closing the server waits for its peers.
func endsSoon(t *testing.T, closed <-chan error) {
	t.Helper()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server still waits for silent peers a minute after its end")
	}
}

func TestAServerThatEndsWaitsForNoSilentPeer(t *testing.T) {
	server, _, end := silentPeers(t, 3)
	closed := make(chan error, 1)
	end()
	go func() { closed <- server.Close() }()
	endsSoon(t, closed)
}

func TestAConnectionThatWaitsForItsPeerStopsWhenTheServerEnds(t *testing.T) {
	server, peers, end := silentPeers(t, 1)
	closed := make(chan error, 1)
	go func() { closed <- server.Close() }()
	if _, err := peers[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("the peer reads %v", err)
	}
	end()
	endsSoon(t, closed)
}
