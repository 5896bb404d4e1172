package s3

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// maxIdleConnections is the number of connections that a copy uses at the same time. They stay open, so that a copy
// does not open a new connection for each object.
const maxIdleConnections = 64

// bufferSize is the buffer size of each connection in each direction, in bytes.
const bufferSize = 32 << 10

// newTransport returns a transport whose connections fail if they transfer nothing for the time stall. A timeout for
// the whole request would be wrong, because a large part may take long on a slow link.
//
// It uses no proxy: the store is in the cluster, and a proxy could read objects, users, policies and secrets.
func newTransport(stall time.Duration, addresses []string) *http.Transport {
	dialer := &rotating{Dialer: net.Dialer{Timeout: 10 * time.Second}, addresses: addresses}
	if len(addresses) > 1 {
		dialer.Timeout = dialTimeoutPerAddress
	}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &movingConn{Conn: conn, stall: stall}, nil
		},
		MaxIdleConns:        maxIdleConnections,
		MaxIdleConnsPerHost: maxIdleConnections,
		// Idle connections must be closed before the stall timeout, which would be an error.
		IdleConnTimeout:     stall / 2,
		TLSHandshakeTimeout: 10 * time.Second,
		ReadBufferSize:      bufferSize,
		WriteBufferSize:     bufferSize,
		// Content is copied as it is stored.
		DisableCompression: true,
	}
}

// httpClient returns a client that follows no redirects, because a redirect would send a signed request to another
// server.
func (c *Client) httpClient() *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// dialTimeoutPerAddress is the timeout for connecting to each address if there are several.
const dialTimeoutPerAddress = 3 * time.Second

// rotating tries the addresses of a store in turn until one accepts the connection. It starts with the address of
// the last successful connection.
type rotating struct {
	net.Dialer
	addresses []string
	last      atomic.Int64
}

// DialContext connects to the given address. If that is the first of d.addresses, it connects to any of them.
func (d *rotating) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if len(d.addresses) < 2 || address != d.addresses[0] {
		return d.Dialer.DialContext(ctx, network, address)
	}
	var errs []error
	first := d.last.Load()
	for i := range d.addresses {
		at := (int(first) + i) % len(d.addresses)
		conn, err := d.Dialer.DialContext(ctx, network, d.addresses[at])
		if err == nil {
			d.last.Store(int64(at))
			return conn, nil
		}
		if errs = append(errs, err); ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// movingConn is a connection with a timeout for each read and write.
type movingConn struct {
	net.Conn
	stall time.Duration
}

// Read fails if no byte arrives within the timeout.
func (c *movingConn) Read(into []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(into)
}

// Write fails if it takes longer than the timeout.
func (c *movingConn) Write(content []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(content)
}
