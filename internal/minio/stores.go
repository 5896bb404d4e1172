package minio

import (
	"context"
	"iter"
	"net"

	"github.com/replicatedhq/ekco/internal/s3"
)

// Credentials are the credentials of both MinIOs.
type Credentials = s3.Credentials

// Store is an object store: standalone MinIO or the highly available MinIO.
type Store interface {
	s3.Target
	// Server returns the version and free space.
	Server(ctx context.Context) (s3.Server, error)
	// ExportIAM and ImportIAM work like the methods of [s3.Client].
	ExportIAM(ctx context.Context) (*s3.IAM, error)
	ImportIAM(ctx context.Context, want *s3.IAM, may func(name string) bool) ([]string, error)
	// ListenForRemovals, TriggerEvent and SetAside work like the methods of [s3.Client].
	ListenForRemovals(ctx context.Context, heard func(s3.Removal)) error
	TriggerEvent(ctx context.Context, bucket, key string) error
	SetAside(ctx context.Context, bucket string, v s3.Version, to string) error
	// Close closes idle connections.
	Close()
}

// Stores connects to object stores.
type Stores interface {
	// Store returns a client of the store. The addresses are alternatives. Store does not connect yet.
	Store(addresses []string, credentials Credentials) (Store, error)
}

// Healer is a server of MinIO that scans its drives.
type Healer interface {
	// Server reports the drives.
	Server(ctx context.Context) (s3.Server, error)
	// Buckets and Versions work like the methods of [s3.Source].
	Buckets(ctx context.Context) ([]string, error)
	Versions(ctx context.Context, bucket, after string) iter.Seq2[s3.Version, error]
	// BeginHeal and HealNews work like the methods of [s3.Client].
	BeginHeal(ctx context.Context) (s3.HealBegun, error)
	HealNews(ctx context.Context, token string) (s3.HealNews, error)
	// Close closes idle connections.
	Close()
}

// Healers connects to single servers.
type Healers interface {
	// Healer returns a client of the server at an address: a host, or a host and a port if the port is not [Port].
	// Healer does not connect yet.
	Healer(at string, credentials Credentials) (Healer, error)
}

// S3 implements [Stores] and [Healers] in a real cluster.
type S3 struct{}

var (
	_ Stores  = S3{}
	_ Healers = S3{}
	_ Store   = (*s3.Client)(nil)
)

// Store implements [Stores].
func (S3) Store(addresses []string, credentials Credentials) (Store, error) {
	return s3.NewClient(s3.Endpoint{Address: addresses[0], Credentials: credentials}, s3.Options{Others: addresses[1:]})
}

// Healer implements [Healers].
func (S3) Healer(at string, credentials Credentials) (Healer, error) {
	return s3.NewClient(s3.Endpoint{Address: address(at), Credentials: credentials}, s3.Options{})
}

// address returns the HOST:PORT of the server of a pod, or "" if host is empty.
func address(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil || host == "" {
		return host
	}
	return net.JoinHostPort(host, Port)
}
