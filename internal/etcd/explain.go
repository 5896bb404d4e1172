package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// alertTimeout limits the wait for a server's TLS alert that it refuses the client's certificate.
const alertTimeout = time.Second

// explain replaces the error of a failed connection by its reason, if it can find the reason. A server refuses the
// client's certificate only after the connection is made, and gRPC then usually reports only a broken pipe.
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

// refusalOf connects to the endpoint and waits for a TLS alert. It returns the alert or another connection error. It
// returns nil if the endpoint accepts the connection or does not answer.
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
