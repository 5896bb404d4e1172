package miniotest_test

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/replicatedhq/ekco/test/await"
	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// greeter is a server that greets by name, and then says each line again.
func greeter(t *testing.T, name string) (address string, end func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 10)
	go func() {
		defer close(conns)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns <- conn
			go func() {
				_, _ = conn.Write([]byte(name + "\n"))
				for lines := bufio.NewReader(conn); ; {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					_, _ = conn.Write([]byte(line))
				}
			}()
		}
	}()
	end = func() {
		listener.Close()
		for conn := range conns {
			conn.Close()
		}
	}
	t.Cleanup(end)
	return listener.Addr().String(), end
}

// talk is a connection through a proxy.
type talk struct {
	net.Conn
	lines *bufio.Reader
}

// connect returns a connection and who greets on it.
func connect(t *testing.T, proxy *miniotest.Proxy) (talk, string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", proxy.Address(), await.HangTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	of := talk{conn, bufio.NewReader(conn)}
	name, err := of.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return of, strings.TrimSpace(name)
}

// answered reports whether the connection is good for a line.
func (c talk) answered() bool {
	if _, err := c.Write([]byte("line\n")); err != nil {
		return false
	}
	line, err := c.lines.ReadString('\n')
	return err == nil && line == "line\n"
}

func TestAConnectionStaysWhereItIsUntilItsServerEnds(t *testing.T) {
	t.Parallel()
	proxy := miniotest.StartProxy(t)
	refused := func() {
		t.Helper()
		if _, err := net.Dial("tcp", proxy.Address()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("with nothing behind it: %v", err)
		}
	}
	refused()
	one, endOne := greeter(t, "one")
	two, _ := greeter(t, "two")
	proxy.Lead(one)
	old, name := connect(t, proxy)
	if name != "one" {
		t.Errorf("it leads to %s", name)
	}
	proxy.Lead()
	refused()
	if !old.answered() {
		t.Error("with nothing behind the proxy any more, an established connection has ended")
	}
	proxy.Lead(two)
	if _, name := connect(t, proxy); name != "two" || !old.answered() {
		t.Errorf("it leads to %s, or the established connection has ended", name)
	}
	proxy.Lead(one, two)
	seen := map[string]bool{}
	for range 4 {
		_, name := connect(t, proxy)
		seen[name] = true
	}
	if len(seen) != 2 {
		t.Errorf("of two it leads to %v", seen)
	}
	endOne()
	await.Until(t, await.HangTimeout, "its connection has ended", func() (bool, string) { return !old.answered(), "it answers" })
}
