package miniotest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/test/loopback"
)

// Proxy leads connections as kube-proxy does for a Service: a new one goes to the next of the
// addresses behind it, and is refused if there is none. One that is established stays where it
// is, whatever becomes of the addresses, until either side ends it: a process that is killed,
// for example. What is not shown is a machine that goes away without a word.
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

// StartProxy starts a proxy with nothing behind it. It ends with the test.
func StartProxy(tb testing.TB) *Proxy {
	tb.Helper()
	p := &Proxy{tb: tb, conns: map[net.Conn]bool{}}
	// An address and a port that no outgoing connection gets while nobody listens.
	p.address = loopback.Network() + "1:9080"
	tb.Cleanup(p.end)
	return p
}

// Address is where clients reach it, as HOST:PORT.
func (p *Proxy) Address() string { return p.address }

// Lead has new connections go to these addresses, as HOST:PORT, from now on. It is for
// one goroutine.
func (p *Proxy) Lead(addresses ...string) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.behind = addresses
	switch open := p.listener != nil; {
	case p.closed || open == (len(addresses) > 0):
	case open: // who comes from now on is refused by the kernel
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

// Established returns how many connections there are.
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

// pick returns where the next connection goes, "" for nowhere.
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

// keep reports false when the proxy has ended.
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
