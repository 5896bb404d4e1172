package s3

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Endpoint is where a store is and who is asked for.
type Endpoint struct {
	// Address is HOST:PORT.
	Address string
	// TLS is set when the store is asked by HTTPS.
	TLS bool
	Credentials
}

// Credentials are those of a store's root user. They are not shown when they are
// printed.
type Credentials struct{ AccessKey, SecretKey string }

// String hides the credentials.
func (Credentials) String() string { return "credentials" }

// GoString hides the credentials.
func (Credentials) GoString() string { return "credentials" }

// String is the URL of the endpoint.
func (e Endpoint) String() string {
	if e.TLS {
		return "https://" + e.Address
	}
	return "http://" + e.Address
}

// GoString is the URL of the endpoint.
func (e Endpoint) GoString() string { return e.String() }

// DefaultStall is the default of [Options.Stall].
const DefaultStall = 2 * time.Minute

// Options are what can be left at its defaults.
type Options struct {
	// Stall is how long a connection may bring nothing before it is given up.
	Stall time.Duration
	// Others are further addresses of the same store. They are tried in turn when one
	// cannot be connected to.
	Others []string
}

// Client speaks to a store. It is a [Source] and a [Target].
type Client struct {
	endpoint Endpoint
	// once sends each request once, as what it changes may be a client's the next time.
	core, once *minio.Core
	transport  *http.Transport
	// region is that of the server, once it has named it.
	region atomic.Value
}

var _ Target = (*Client)(nil)

// NewClient returns a client of a store. It connects to nothing yet.
func NewClient(endpoint Endpoint, options Options) (*Client, error) {
	if options.Stall == 0 {
		options.Stall = DefaultStall
	}
	transport := newTransport(options.Stall, append([]string{endpoint.Address}, options.Others...))
	c := &Client{endpoint: endpoint, transport: transport}
	for core, attempts := range map[**minio.Core]int{&c.core: retries, &c.once: 1} {
		var err error
		*core, err = minio.NewCore(endpoint.Address, &minio.Options{
			Creds:        credentials.NewStaticV4(endpoint.AccessKey, endpoint.SecretKey, ""),
			Secure:       endpoint.TLS,
			Transport:    transport,
			BucketLookup: minio.BucketLookupPath,
			MaxRetries:   attempts,
		})
		if err != nil {
			return nil, fmt.Errorf("make a client of %s: %w", endpoint, err)
		}
	}
	return c, nil
}

// retries is how often minio-go sends a request without a body before the error
// is ours.
const retries = 5

// Close closes connections that are not in use.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// String is the URL of the store.
func (c *Client) String() string { return c.endpoint.String() }
