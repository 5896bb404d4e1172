package execserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
)

// endTimeout is how long killed programs may take to end; the kernel needs milliseconds.
const endTimeout = 2 * time.Second

// Options configures the server.
type Options struct {
	Address  string // host:port to listen at
	Cert     string // file: serving certificate
	Key      string // file: key of the serving certificate
	ClientCA string // file: the CA of the API server's client certificate
	Client   string // common name that this certificate must have
	Program  string // absolute path of the program to run for each exec; "" refuses every exec
	API      kubernetes.Interface
	Log      *slog.Logger
}

// Serve serves until ctx ends, and then returns nil. It kills the running programs, and returns when they have ended,
// or after 2 s.
func Serve(ctx context.Context, o Options) error {
	config, err := o.tls()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("cannot listen for exec requests: %w", err)
	}
	sessions := &sessions{api: o.API, program: o.Program, log: o.Log}
	server := &http.Server{
		Handler:           sessions.handler(),
		TLSConfig:         config,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelInfo),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       untilGone,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(watchingListener{listener, ctx, lingerTimeout}, "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve exec requests at %s: %w", o.Address, err)
	case <-ctx.Done():
	}
	err = server.Close()
	if ended := <-failed; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, sessions.wait(endTimeout))
}

// tls requires the API server's client certificate. It does not offer HTTP/2, because an HTTP/2 request cannot be
// upgraded to a stream.
func (o Options) tls() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the exec server's certificate: %w", err)
	}
	pem, err := os.ReadFile(o.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority of the API server's certificate: %w", err)
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", o.ClientCA)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    authority,
		NextProtos:   []string{"http/1.1"},
		VerifyConnection: func(state tls.ConnectionState) error {
			if name := state.PeerCertificates[0].Subject.CommonName; name != o.Client {
				return fmt.Errorf("client %q is not %q", name, o.Client)
			}
			return nil
		},
	}, nil
}
