package etcdtest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/internal/etcd"
)

// hiddenPort is the port on which members behind a [Relay] listen.
const hiddenPort = "2389"

// Relay forwards data between clients and members, and listens on the members' usual addresses. It sees bytes, not
// requests.
type Relay struct {
	cluster *Cluster

	mu                   sync.Mutex
	onQuestion, onAnswer func() (cut bool)
	// open has the open listeners and connections.
	open map[io.Closer]bool
	// closed is true once close has begun. New connections are then closed at once.
	closed bool
	ended  sync.WaitGroup
}

// StartRelayed is [Start] with a relay in front of every member.
func StartRelayed(t testing.TB, program string, names ...string) (*Cluster, *Relay) {
	t.Helper()
	r := &Relay{open: make(map[io.Closer]bool)}
	return launch(t, program, r, names...), r
}

// Watch sets functions that are called before each piece of a request, or of an answer, is forwarded. They may block,
// which delays that connection. If they return true, the connection is closed instead. They are called from several
// goroutines. They may be nil.
func (r *Relay) Watch(onQuestion, onAnswer func() (cut bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onQuestion, r.onAnswer = onQuestion, onAnswer
}

// Direct returns EKCO's client for the nodes' members, without the relay.
func (r *Relay) Direct(names ...string) (*etcd.Client, error) {
	var endpoints []string
	for _, name := range names {
		endpoints = append(endpoints, "https://"+net.JoinHostPort(r.cluster.IP(name), hiddenPort))
	}
	return etcd.NewClient(endpoints, etcd.Options{CertificatesDir: r.cluster.CertificatesDir()})
}

// listen opens the usual port of a node.
func (r *Relay) listen(t testing.TB, ip string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(ip, "2379"))
	if err != nil {
		t.Fatal(err)
	}
	r.track(listener)
	r.ended.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			r.ended.Go(func() { r.connect(t.Context(), client, net.JoinHostPort(ip, hiddenPort)) })
		}
	})
}

// connect connects a client with a member until one of them disconnects.
func (r *Relay) connect(ctx context.Context, client net.Conn, address string) {
	member, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	r.join(client, member)
}

// join forwards data in both directions until one end closes.
func (r *Relay) join(client, member net.Conn) {
	defer r.track(client, member)()
	var both sync.WaitGroup
	both.Go(func() { r.pass(member, client, func() func() bool { return r.onQuestion }) })
	both.Go(func() { r.pass(client, member, func() func() bool { return r.onAnswer }) })
	both.Wait()
}

// track registers open connections for close. The returned function removes them. After close, track closes them
// itself.
func (r *Relay) track(open ...io.Closer) (forget func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range open {
		r.open[o] = true
		if r.closed {
			_ = o.Close()
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, o := range open {
			delete(r.open, o)
		}
	}
}

// close closes everything. No Watch function may be blocking.
func (r *Relay) close() {
	r.mu.Lock()
	r.closed = true
	for o := range r.open {
		_ = o.Close()
	}
	r.mu.Unlock()
	r.ended.Wait()
}

// pass copies from one end to the other.
func (r *Relay) pass(to, from net.Conn, watcher func() func() bool) {
	defer func() {
		_ = to.Close()
		_ = from.Close()
	}()
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			r.mu.Lock()
			watch := watcher()
			r.mu.Unlock()
			if watch != nil && watch() {
				return
			}
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
