package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/sim/memorynet"
)

// running runs a test with a Runner. listeners has its listeners, the newest last.
func running(t *testing.T, test func(t *testing.T, r *Runner, listeners *[]*memorynet.Listener)) {
	synctest.Test(t, func(t *testing.T) {
		var listeners []*memorynet.Listener
		r := &Runner{Address: ":443", Handler: http.HandlerFunc(nothing), Log: slog.New(slog.DiscardHandler)}
		r.listen = func(context.Context, string, string) (net.Listener, error) {
			listeners = append(listeners, memorynet.Listen())
			return listeners[len(listeners)-1], nil
		}
		test(t, r, &listeners)
		r.Close()
	})
}

// presents returns nil if the server has a certificate that this CA signed.
func presents(t *testing.T, listener *memorynet.Listener, certificate *Certificate) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	conn, err := listener.Dial(ctx, "tcp", Host)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate.CA)
	encrypted := tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: Host, Time: time.Now})
	defer func() { _ = conn.Close() }()
	return encrypted.HandshakeContext(ctx)
}

func TestTheServerRunsFromTheFirstCertificateToItsStop(t *testing.T) {
	running(t, func(t *testing.T, r *Runner, listeners *[]*memorynet.Listener) {
		first, second := newCertificate(t, time.Now()), newCertificate(t, time.Now())
		if r.Stop(); r.Serving() != "" || len(*listeners) != 0 {
			t.Error("it serves without a certificate")
		}
		for _, certificate := range []*Certificate{first, second} {
			if err := r.Use(t.Context(), certificate); err != nil {
				t.Fatal(err)
			}
			if err := presents(t, (*listeners)[0], certificate); err != nil || r.Serving() != certificate.Fingerprint {
				t.Errorf("it serves %s: %v", r.Serving(), err)
			}
		}
		if err := presents(t, (*listeners)[0], first); err == nil {
			t.Error("it still serves with the former certificate")
		}
		r.Stop()
		if err := presents(t, (*listeners)[0], second); err == nil || r.Serving() != "" {
			t.Errorf("stopped, it serves %s", r.Serving())
		}
		if err := r.Use(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		if err := presents(t, (*listeners)[1], second); err != nil {
			t.Error(err)
		}
		r.Close()
		if err := r.Use(t.Context(), second); err == nil || r.Serving() != "" {
			t.Errorf("closed, it serves %s: %v", r.Serving(), err)
		}
	})
}

func TestTheEndOfTheContextThatStartedTheServerDoesNotStopIt(t *testing.T) {
	running(t, func(t *testing.T, r *Runner, listeners *[]*memorynet.Listener) {
		ctx, cancel := context.WithCancel(t.Context())
		certificate := newCertificate(t, time.Now())
		if err := r.Use(ctx, certificate); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if err := presents(t, (*listeners)[0], certificate); err != nil {
			t.Error(err)
		}
	})
}

func TestAServerWhoseListenerFailedIsStartedAgain(t *testing.T) {
	running(t, func(t *testing.T, r *Runner, listeners *[]*memorynet.Listener) {
		certificate := newCertificate(t, time.Now())
		if err := r.Use(t.Context(), certificate); err != nil {
			t.Fatal(err)
		}
		_ = (*listeners)[0].Close()
		synctest.Wait()
		if r.Serving() != "" {
			t.Error("it claims to serve")
		}
		if err := r.Use(t.Context(), certificate); err != nil {
			t.Fatal(err)
		}
		if err := presents(t, (*listeners)[len(*listeners)-1], certificate); err != nil || len(*listeners) != 2 {
			t.Errorf("it has had %d listeners: %v", len(*listeners), err)
		}
	})
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	inUse := errors.New("in use")
	running(t, func(t *testing.T, r *Runner, _ *[]*memorynet.Listener) {
		r.listen = func(context.Context, string, string) (net.Listener, error) { return nil, inUse }
		if err := r.Use(t.Context(), newCertificate(t, time.Now())); !errors.Is(err, inUse) || r.Serving() != "" {
			t.Errorf("it serves %q: %v", r.Serving(), err)
		}
	})
}

func TestTheRequestThatVerifiesTheServerIsReadable(t *testing.T) {
	h := newHandlerTest(Options{Overrides: []Override{{"a", "b"}}})
	if response := h.post(t, PathImages, encode(t, probe())); response.Patch != nil || response.UID != "ekco" || h.results[0] != Unchanged || h.log.Len() > 0 {
		t.Errorf("the response is %+v, the result %s, the log %q", response, h.results[0], h.log.String())
	}
}
