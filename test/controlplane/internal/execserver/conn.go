package execserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// lingerTimeout is how long a connection stays open for a peer that does not close it. The API server closes it at
// once.
const lingerTimeout = time.Second

// errClientGone is the cause of the end of a request's context when its connection has ended.
var errClientGone = errors.New("the client went away")

// watchingListener accepts connections that report the disconnection of their peer.
type watchingListener struct {
	net.Listener
	// serving ends when the server must stop.
	serving context.Context
	linger  time.Duration
}

func (l watchingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: conn, gone: func(error) {}, serving: l.serving, linger: l.linger}, nil
}

// watchedConn calls gone when it can no longer be read. After a request has taken over a connection, net/http no longer
// watches it. But the stream libraries read it all the time, except while they wait for the program to read its input.
type watchedConn struct {
	net.Conn
	gone    context.CancelCauseFunc
	serving context.Context
	linger  time.Duration
	once    sync.Once
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	// net/http interrupts its own reads by a deadline.
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.gone(errClientGone)
	}
	return n, err
}

// Close first lets the peer read all written data. If unread input were left, the kernel would reset the connection,
// and the API server, which copies in both directions, would drop the rest of the output. A server that stops has
// killed the programs, and waits for no peer.
func (c *watchedConn) Close() error {
	c.once.Do(func() {
		c.gone(errClientGone)
		stop := context.AfterFunc(c.serving, func() { _ = c.Conn.Close() })
		defer stop()
		if c.Conn.(*net.TCPConn).CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(c.linger)) == nil {
			_, _ = io.Copy(io.Discard, c.Conn) // until the peer closes it, too
		}
	})
	return c.Conn.Close()
}

// untilGone is the ConnContext function of a http.Server: the contexts of a connection's requests end with the
// connection.
func untilGone(ctx context.Context, conn net.Conn) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	conn.(*tls.Conn).NetConn().(*watchedConn).gone = cancel
	return ctx
}
