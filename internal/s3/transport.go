package s3

import (
	"context"
	"net"
	"net/http"
	"time"
)

// connections is how many idle connections are kept: as many as a copy uses at
// the same time, or each object would need a new one.
const connections = 64

// bufferSize is that of each connection in each direction.
const bufferSize = 32 << 10

// newTransport returns a transport whose connections fail when nothing moves on
// them for a while. A limit of the whole request would not do: a large part may
// take long on a slow link.
func newTransport(stall time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &movingConn{Conn: conn, stall: stall}, nil
		},
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		// The conn's own limit would end an idle one too, but as an error.
		IdleConnTimeout:     stall / 2,
		TLSHandshakeTimeout: 10 * time.Second,
		ReadBufferSize:      bufferSize,
		WriteBufferSize:     bufferSize,
		// Content is copied as it is stored.
		DisableCompression: true,
	}
}

// movingConn is a connection on which each read and write has a time limit.
type movingConn struct {
	net.Conn
	stall time.Duration
}

// Read waits for bytes no longer than the limit.
func (c *movingConn) Read(into []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(into)
}

// Write waits for room no longer than the limit.
func (c *movingConn) Write(content []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(content)
}
