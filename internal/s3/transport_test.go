package s3

import (
	"net"
	"testing"
	"time"
)

// closed returns an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestOneOfSeveralAddressesThatDoesNotAnswerIsPassedOver(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	away, there := closed(t), listener.Addr().String()
	transport := newTransport(time.Minute, []string{away, there})
	for range 2 { // the second time it begins with the one that answered
		conn, err := transport.DialContext(t.Context(), "tcp", away)
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.RemoteAddr().String(); got != there {
			t.Errorf("connected to %s, want %s", got, there)
		}
		conn.Close()
	}
	if conn, err := newTransport(time.Minute, []string{away, closed(t)}).DialContext(t.Context(), "tcp", away); err == nil {
		conn.Close()
		t.Error("connected to nobody")
	}
	if conn, err := transport.DialContext(t.Context(), "tcp", closed(t)); err == nil {
		conn.Close()
		t.Error("another store is none of them")
	}
}
