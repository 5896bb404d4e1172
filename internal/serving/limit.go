package serving

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Limit returns a listener that allows up to all connections in total, and up to each from one address.
//
// It never makes a client wait. If there are too many connections, it closes the oldest connection of the address that
// has the most. So a new client always has time for its request, and a client with few connections loses none because
// of a client with many. Idle connections and running requests are counted separately, so that idle connections end no
// request.
func Limit(listener net.Listener, all, each int) *Limited {
	return &Limited{Listener: listener, all: all, each: each, open: make(map[*limitedConn]struct{})}
}

// Limited is a listener that limits connections. Set its Follow as [http.Server.ConnState].
type Limited struct {
	net.Listener
	all, each int

	mu   sync.Mutex
	open map[*limitedConn]struct{}
	// changes counts when a connection becomes idle or active, to order the connections by their last change.
	changes uint64
}

// Accept returns the next connection. It may close another connection.
func (l *Limited) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	admitted := &limitedConn{Conn: conn, listener: l, from: networkOf(conn.RemoteAddr())}
	l.enter(admitted, false)
	return admitted, nil
}

// Follow is the ConnState function of an http.Server, with or without TLS. It notes when a request begins and ends.
func (l *Limited) Follow(conn net.Conn, state http.ConnState) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	if c, ok := conn.(*limitedConn); ok && (state == http.StateActive || state == http.StateIdle) {
		l.enter(c, state == http.StateActive)
	}
}

// enter counts a connection as idle or active, and closes a connection if there are too many of that kind.
func (l *Limited) enter(c *limitedConn, active bool) {
	l.mu.Lock()
	l.changes++
	c.active, c.lastChange = active, l.changes
	l.open[c] = struct{}{}
	surplus := l.connectionToClose(c)
	l.mu.Unlock()
	if surplus != nil {
		_ = surplus.Close()
	}
}

// connectionToClose returns the connection to close after c was counted, or nil.
func (l *Limited) connectionToClose(c *limitedConn) *limitedConn {
	count, all := make(map[netip.Prefix]int), 0
	for other := range l.open {
		if other.active == c.active {
			count[other.from]++
			all++
		}
	}
	if all <= l.all && count[c.from] <= l.each {
		return nil
	}
	worst := c
	for other := range l.open {
		if other.active != c.active {
			continue
		}
		more := count[other.from] - count[worst.from]
		if more > 0 || more == 0 && other.lastChange < worst.lastChange {
			worst = other
		}
	}
	return worst
}

func (l *Limited) leave(c *limitedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

type limitedConn struct {
	net.Conn
	listener *Limited
	from     netip.Prefix

	// The listener's mutex guards these fields. active is true while a request is running.
	active     bool
	lastChange uint64
}

// Close closes the connection and no longer counts it.
func (c *limitedConn) Close() error {
	c.listener.leave(c)
	return c.Conn.Close()
}

// networkOf returns the network that counts as one address. For IPv6 that is the /64 network, because one machine can
// use all its addresses.
func networkOf(address net.Addr) netip.Prefix {
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
