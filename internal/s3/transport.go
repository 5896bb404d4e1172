package s3

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// connections is how many idle connections are kept: as many as a copy uses at the same time, so
// that not every object needs a new one.
const connections = 64

// bufferSize is the size of the buffer of each connection in each direction.
const bufferSize = 32 << 10

// newTransport returns a transport whose connections fail if they transfer nothing for a while. A
// timeout of the whole request would not work: a large part may take long on a slow link.
//
// It uses no proxy: the store is in the cluster, and a proxy could read what is sent to it
// (objects, users, policies, secrets).
func newTransport(stall time.Duration, addresses []string) *http.Transport {
	dialer := &rotating{Dialer: net.Dialer{Timeout: 10 * time.Second}, addresses: addresses}
	if len(addresses) > 1 {
		dialer.Timeout = otherTimeout
	}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &movingConn{Conn: conn, stall: stall}, nil
		},
		MaxIdleConns:        connections,
		MaxIdleConnsPerHost: connections,
		// The stall timeout would also end an idle connection, but as an error.
		IdleConnTimeout:     stall / 2,
		TLSHandshakeTimeout: 10 * time.Second,
		ReadBufferSize:      bufferSize,
		WriteBufferSize:     bufferSize,
		// Content is copied as it is stored.
		DisableCompression: true,
	}
}

// caller returns a client that follows no redirect, which would send a signed request to another
// server.
func (c *Client) caller() *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// otherTimeout is the timeout of a connection if there are several addresses.
const otherTimeout = 3 * time.Second

// rotating connects to the first of several addresses of a store that answers, starting with the
// last one that did.
type rotating struct {
	net.Dialer
	addresses []string
	last      atomic.Int64
}

// DialContext uses the given address only if there are no others.
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

// Read waits for bytes no longer than the timeout.
func (c *movingConn) Read(into []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(into)
}

// Write waits no longer than the timeout.
func (c *movingConn) Write(content []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(content)
}
