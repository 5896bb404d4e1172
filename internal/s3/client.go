package s3

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Endpoint is the address of a store, with credentials.
type Endpoint struct {
	// Address is HOST:PORT.
	Address string
	// TLS selects HTTPS.
	TLS bool
	Credentials
}

// Credentials are the credentials of a store's root user. Printing them does not show them.
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

// Options of a client, with defaults.
type Options struct {
	// Stall is the time without any transfer after which a connection is closed.
	Stall time.Duration
	// Others are more addresses of the same store. If a connection fails, the client tries the next address.
	Others []string
}

// Client is a client of a store. It is a [Source] and a [Target].
type Client struct {
	endpoint Endpoint
	// noRetry sends each request only once: a repeated request could change a version that another client wrote
	// in between.
	core, noRetry *minio.Core
	transport     *http.Transport
	// region is the server's region. It is empty until the server has reported it.
	region atomic.Value
}

var _ Target = (*Client)(nil)

// NewClient returns a client of a store. It does not connect yet.
func NewClient(endpoint Endpoint, options Options) (*Client, error) {
	if options.Stall == 0 {
		options.Stall = DefaultStall
	}
	transport := newTransport(options.Stall, append([]string{endpoint.Address}, options.Others...))
	c := &Client{endpoint: endpoint, transport: transport}
	for core, attempts := range map[**minio.Core]int{&c.core: maxRequestAttempts, &c.noRetry: 1} {
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

// maxRequestAttempts is the number of times that minio-go sends a request without a body.
const maxRequestAttempts = 5

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// String is the URL of the store.
func (c *Client) String() string { return c.endpoint.String() }
