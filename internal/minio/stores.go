package minio

import (
	"context"
	"net"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Credentials are those of both MinIOs.
type Credentials = s3.Credentials

// Store is a MinIO as an object store.
type Store interface {
	s3.Target
	// Server tells its version and room.
	Server(ctx context.Context) (s3.Server, error)
	// ExportIAM and ImportIAM are those of [s3.Client].
	ExportIAM(ctx context.Context) (*s3.IAM, error)
	ImportIAM(ctx context.Context, want *s3.IAM) ([]string, error)
	// Close closes what connections are left.
	Close()
}

// Stores connects to object stores.
type Stores interface {
	// Store returns a client of the store at these addresses, of which any will do. It
	// connects to nothing yet.
	Store(addresses []string, credentials Credentials) (Store, error)
}

// Looker has a MinIO look through all it keeps, at these addresses, of which any will do; see
// [s3.Client.Heal].
type Looker interface {
	LookThrough(ctx context.Context, addresses []string, credentials Credentials, report func(items int64)) (s3.HealPass, error)
}

// S3 are the [Stores] of a real cluster, and its [Looker].
type S3 struct{}

var (
	_ Stores = S3{}
	_ Looker = S3{}
	_ Store  = (*s3.Client)(nil)
)

// Store implements [Stores].
func (S3) Store(addresses []string, credentials Credentials) (Store, error) {
	return s3.NewClient(s3.Endpoint{Address: addresses[0], Credentials: credentials}, s3.Options{Others: addresses[1:]})
}

// LookThrough implements [Looker].
func (S3) LookThrough(ctx context.Context, addresses []string, credentials Credentials, report func(items int64)) (s3.HealPass, error) {
	client, err := s3.NewClient(s3.Endpoint{Address: addresses[0], Credentials: credentials}, s3.Options{Others: addresses[1:]})
	if err != nil {
		return s3.HealPass{}, err
	}
	defer client.Close()
	return client.Heal(ctx, report)
}

// address is where the server of a pod listens: HOST:PORT, empty without a host.
func address(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil || host == "" {
		return host
	}
	return net.JoinHostPort(host, Port)
}
