package serving

import (
	"fmt"
	"net"
	"testing"
)

func TestOneMachineIsOneAddress(t *testing.T) {
	for _, pair := range []struct {
		a, b string
		same bool
	}{
		{"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false},
		{"10.0.0.1", "::ffff:10.0.0.1", true},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
	} {
		a, b := networkOf(&net.TCPAddr{IP: net.ParseIP(pair.a), Port: 1}), networkOf(&net.TCPAddr{IP: net.ParseIP(pair.b), Port: 2})
		if (a == b) != pair.same {
			t.Errorf("%s counts as %s, %s as %s", pair.a, a, pair.b, b)
		}
	}
	if a, b := networkOf(&net.UnixAddr{}), networkOf(nil); a != b {
		t.Errorf("what has no address counts as %s and %s", a, b)
	}
}

func TestConnectionsAreBoundedAllInAllAndOfEachAddress(t *testing.T) {
	for name, test := range map[string]struct {
		all, each int
		address   func(i int) string
	}{
		"of one address": {100, 3, func(int) string { return "10.0.0.1" }},
		"all in all":     {3, 100, func(i int) string { return fmt.Sprintf("10.0.0.%d", i) }},
	} {
		l := Limit(nil, test.all, test.each)
		for i := range 10 {
			here, there := net.Pipe()
			defer there.Close()
			l.enter(&limitedConn{Conn: here, listener: l, from: networkOf(&net.TCPAddr{IP: net.ParseIP(test.address(i))})}, false)
		}
		if len(l.open) != 3 {
			t.Errorf("%s: %d are open, want 3", name, len(l.open))
		}
		for c := range l.open {
			_ = c.Conn.Close()
		}
	}
}
