package api

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// limit returns a listener that keeps at most so many connections that wait for
// a request, and as many on which a request is under way: all in all, and of
// each address.
//
// It never keeps anybody waiting. When there are too many, the oldest connection
// of the address that has most is closed, so a newcomer always has the time to
// ask and to hear the answer, and who has few connections loses none to
// who has many. Those that wait and those that are being answered are counted
// apart, so that idle ones cut off no request.
func limit(listener net.Listener, all, each int) *limitedListener {
	return &limitedListener{Listener: listener, all: all, each: each, open: make(map[*limitedConn]struct{})}
}

type limitedListener struct {
	net.Listener
	all, each int

	mu   sync.Mutex
	open map[*limitedConn]struct{}
	// turns counts what happened to connections; it tells older from newer.
	turns uint64
}

// Accept returns the next connection, for which another one may be closed.
func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	admitted := &limitedConn{Conn: conn, listener: l, from: origin(conn.RemoteAddr())}
	l.enter(admitted, false)
	return admitted, nil
}

// follow is an http.Server's ConnState: it notes when a request begins and ends.
func (l *limitedListener) follow(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*limitedConn); ok && (state == http.StateActive || state == http.StateIdle) {
		l.enter(c, state == http.StateActive)
	}
}

// enter counts a connection among those that are answered or those that wait,
// and closes one of them if there are too many.
func (l *limitedListener) enter(c *limitedConn, answered bool) {
	l.mu.Lock()
	l.turns++
	c.answered, c.turn = answered, l.turns
	l.open[c] = struct{}{}
	surplus := l.surplus(c)
	l.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close()
	}
}

// surplus returns which connection there is too many since c was counted.
func (l *limitedListener) surplus(c *limitedConn) *limitedConn {
	count, all := make(map[netip.Prefix]int), 0
	for other := range l.open {
		if other.answered == c.answered {
			count[other.from]++
			all++
		}
	}
	if all <= l.all && count[c.from] <= l.each {
		return nil
	}
	worst := c
	for other := range l.open {
		if other.answered != c.answered {
			continue
		}
		more := count[other.from] - count[worst.from]
		if more > 0 || more == 0 && other.turn < worst.turn {
			worst = other
		}
	}
	return worst
}

func (l *limitedListener) leave(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

type limitedConn struct {
	net.Conn
	listener *limitedListener
	from     netip.Prefix

	// The listener's mutex guards these: whether a request is under way, and
	// since which turn it is so.
	answered bool
	turn     uint64
}

// Close closes the connection, which counts no longer.
func (c *limitedConn) Close() error {
	c.listener.leave(c)
	return c.Conn.Close()
}

// origin is what counts as one address: of IPv6 the network of 64 bits, all of
// whose addresses one machine can have.
func origin(address net.Addr) netip.Prefix {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := min(ip.BitLen(), 64)
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
