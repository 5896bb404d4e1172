package etcdtest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/internal/etcd"
)

// hiddenPort is where members behind a [Relay] listen.
const hiddenPort = "2389"

// Relay passes on what clients and members say to each other, at the members'
// usual addresses. It sees bytes, not requests.
type Relay struct {
	cluster *Cluster

	mu                   sync.Mutex
	onQuestion, onAnswer func() (cut bool)
	// open are the listeners and connections.
	open map[io.Closer]bool
	// closed is set when close has begun: what comes later is closed at once.
	closed bool
	ended  sync.WaitGroup
}

// StartRelayed is [Start] with a relay in front of every member.
func StartRelayed(t testing.TB, program string, names ...string) (*Cluster, *Relay) {
	t.Helper()
	r := &Relay{open: make(map[io.Closer]bool)}
	return launch(t, program, r, names...), r
}

// Watch has the functions called before each piece of a question, and of an
// answer, is passed on. They may block, which holds that connection; if they
// report true, the connection is cut instead. They are called from several
// goroutines. Nil functions are not called.
func (r *Relay) Watch(onQuestion, onAnswer func() (cut bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onQuestion, r.onAnswer = onQuestion, onAnswer
}

// Direct is EKCO's client of the members of nodes, past the relay.
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

// connect joins a client with a member until they are parted.
func (r *Relay) connect(ctx context.Context, client net.Conn, address string) {
	member, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		_ = client.Close()
		return
	}
	r.join(client, member)
}

// join passes on what two ends say until one of them hangs up.
func (r *Relay) join(client, member net.Conn) {
	defer r.track(client, member)()
	var both sync.WaitGroup
	both.Go(func() { r.pass(member, client, func() func() bool { return r.onQuestion }) })
	both.Go(func() { r.pass(client, member, func() func() bool { return r.onAnswer }) })
	both.Wait()
}

// track lets close end what is open; the returned function forgets it. After
// close it ends it itself.
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

// close ends everything. Nothing may be held.
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
