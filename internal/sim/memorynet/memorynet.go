// Package memorynet is a network in memory. In a testing/synctest bubble, simulated time
// passes while goroutines wait for its connections; it stops while they wait for sockets.
package memorynet

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
)

// Listener accepts the connections of [Listener.Dial].
type Listener struct {
	accepted chan net.Conn
	closed   chan struct{}
	closing  sync.Once
}

// Listen returns a new listener.
func Listen() *Listener {
	return &Listener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Serve starts an HTTP server and returns it with a transport for its clients.
func Serve(handler http.Handler) (*httptest.Server, *http.Transport) {
	listener := Listen()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}} //nolint:gosec // for tests
	server.Start()
	return server, &http.Transport{DialContext: listener.Dial}
}

// Dial connects to the listener, whatever the address is.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	err := error(syscall.ECONNREFUSED)
	select {
	case l.accepted <- theirs:
		return ours, nil
	case <-l.closed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	_, _ = ours.Close(), theirs.Close()
	return nil, &net.OpError{Op: "dial", Net: "memory", Addr: l.Addr(), Err: err}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }
