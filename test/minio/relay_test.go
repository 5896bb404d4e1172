package miniotest_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay stands before a server and breaks connections.
type relay struct {
	address, behind string

	mu    sync.Mutex
	conns []net.Conn
	// left is how many bytes of each connection pass until it breaks; 0 does not
	// break any.
	left int64
	// broken counts the connections that were.
	broken int
}

// newRelay starts a relay that ends with the test.
func newRelay(t *testing.T, behind string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{address: listener.Addr().String(), behind: behind}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		r.cut()
		all.Wait()
	})
	return r
}

// breakAfter makes connections that begin from now on break after so many bytes.
func (r *relay) breakAfter(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = bytes
}

// cut breaks all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		conn.Close()
	}
	r.conns = nil
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.behind)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	r.conns = append(r.conns, client, server)
	left := r.left
	r.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { r.carry(server, client, left) })
	both.Go(func() { r.carry(client, server, left) })
	both.Wait()
}

// carry carries bytes one way until either side is closed, or enough went.
func (r *relay) carry(to, from net.Conn, left int64) {
	defer to.Close()
	defer from.Close()
	var err error
	if left == 0 {
		_, err = io.Copy(to, from)
	} else {
		_, err = io.CopyN(to, from, left)
	}
	if left != 0 && err == nil {
		r.mu.Lock()
		r.broken++
		r.mu.Unlock()
	}
}

// silent is the address of a server that takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}
