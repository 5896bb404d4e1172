package s3

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
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
//
// It knows no proxy: a store is in the cluster, and what is sent to it (objects, users,
// policies, secrets) is nobody else's to see.
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
		// The conn's own limit would end an idle one too, but as an error.
		IdleConnTimeout:     stall / 2,
		TLSHandshakeTimeout: 10 * time.Second,
		ReadBufferSize:      bufferSize,
		WriteBufferSize:     bufferSize,
		// Content is copied as it is stored.
		DisableCompression: true,
	}
}

// caller returns a client that follows no redirect: it would take what is sent, and whose
// signature it has, elsewhere.
func (c *Client) caller() *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// otherTimeout is how long one of several addresses may take to answer.
const otherTimeout = 3 * time.Second

// rotating connects to the first of several addresses that answers, from the one that did
// last on. All are of one store.
type rotating struct {
	net.Dialer
	addresses []string
	last      atomic.Int64
}

// DialContext connects to the address that is asked for only where it is not one of
// several.
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
