package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// alertWithin is how long a server that refuses a certificate may take to say so.
const alertWithin = time.Second

// explain returns why there is no connection, when that is what err is about. A
// server that refuses the client's certificate says so after the client already
// thinks it is connected, and gRPC mostly reports no more than a broken pipe.
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

// refusalOf connects and listens for an alert. It returns nil when the endpoint
// takes the connection, or is silent.
func refusalOf(ctx context.Context, endpoint string, credentials *tls.Config) error {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	config := credentials.Clone()
	config.NextProtos = []string{"h2"}
	ctx, cancel := context.WithTimeout(ctx, alertWithin)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", parsed.Host)
	if late(ctx, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(alertWithin)); err != nil {
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); !late(ctx, err) {
		return err
	}
	return nil
}

// late reports whether err only says that the time was over.
func late(ctx context.Context, err error) bool {
	var timeout interface{ Timeout() bool }
	return err != nil && (ctx.Err() != nil || (errors.As(err, &timeout) && timeout.Timeout()))
}
