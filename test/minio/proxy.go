package miniotest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/test/loopback"
)

// Proxy forwards connections like kube-proxy for a Service. A new connection goes to the next backend address, or is
// refused if there is none. An established connection stays where it is, even if the addresses change, until either
// side ends it. The proxy cannot simulate a machine that disappears without ending its connections.
type Proxy struct {
	tb      testing.TB
	address string

	mu       sync.Mutex
	listener net.Listener
	behind   []string
	next     int
	conns    map[net.Conn]bool
	closed   bool
	all      sync.WaitGroup
}

// StartProxy starts a proxy without backends. It ends with the test.
func StartProxy(tb testing.TB) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, conns: map[net.Conn]bool{}}
	// Use an address and a port that no outgoing connection gets while the proxy does not listen.
	p.address = loopback.Network() + "1:9080"
	tb.Cleanup(p.end)
	return p
}

// Address returns the proxy's address as HOST:PORT.
func (p *Proxy) Address() string { return p.address }

// Lead sets the backend addresses, as HOST:PORT, for new connections. Only one goroutine may call it.
func (p *Proxy) Lead(addresses ...string) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = addresses
	switch open := p.listener != nil; {
	case p.closed || open == (len(addresses) > 0):
	case open: // the kernel refuses new connections from now on
		_ = p.listener.Close()
		p.listener = nil
	default:
		listener, err := new(net.ListenConfig).Listen(context.WithoutCancel(p.tb.Context()), "tcp", p.address)
		if err != nil {
			p.tb.Errorf("lead connections to %q: %v", addresses, err)
			return
		}
		p.listener = listener
		p.all.Go(func() { p.accept(listener) })
	}
}

// Established returns the number of open connections.
func (p *Proxy) Established() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2
}

func (p *Proxy) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(conn) })
	}
}

// pick returns the backend for the next connection, or "" if there is none.
func (p *Proxy) pick() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.behind) == 0 {
		return ""
	}
	p.next++
	return p.behind[p.next%len(p.behind)]
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	to := p.pick()
	if to == "" {
		return
	}
	server, err := new(net.Dialer).DialContext(context.WithoutCancel(p.tb.Context()), "tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(client, server) {
		return
	}
	defer p.forget(client, server)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either side may end it at any time
			_ = client.Close()
			_ = server.Close()
		})
	}
	both.Wait()
}

// keep registers connections. It returns false if the proxy has ended.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
	return !p.closed
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}

func (p *Proxy) end() {
	p.mu.Lock()
	p.closed = true
	if p.listener != nil {
		_ = p.listener.Close()
	}
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}
