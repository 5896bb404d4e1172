package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// alertTimeout is how long a server may take to report that it refuses a certificate.
const alertTimeout = time.Second

// explain returns why there is no connection, if err is about that. A server that refuses the client's
// certificate reports that after the client already sees a connection, and gRPC mostly reports only a broken
// pipe.
func explain(ctx context.Context, endpoint string, credentials *tls.Config, err error) error {
	var answer rpctypes.EtcdError
	if errors.As(err, &answer) || ctx.Err() != nil {
		return err
	}
	if refusal := refusalOf(ctx, endpoint, credentials); refusal != nil {
		return refusal
	}
	return err
}

// refusalOf connects and waits for an alert. It returns nil if the endpoint accepts the connection, or is
// silent.
func refusalOf(ctx context.Context, endpoint string, credentials *tls.Config) error {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	config := credentials.Clone()
	config.NextProtos = []string{"h2"}
	ctx, cancel := context.WithTimeout(ctx, alertTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", parsed.Host)
	if isTimeout(ctx, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(alertTimeout)); err != nil {
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); !isTimeout(ctx, err) {
		return err
	}
	return nil
}

// isTimeout reports whether err only means a timeout.
func isTimeout(ctx context.Context, err error) bool {
	var timeout interface{ Timeout() bool }
	return err != nil && (ctx.Err() != nil || (errors.As(err, &timeout) && timeout.Timeout()))
}
