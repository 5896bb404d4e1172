package webhook

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/sim/memorynet"
)

// served is a server in memory, in a bubble of synctest.
type served struct {
	t           *testing.T
	listener    *memorynet.Listener
	certificate atomic.Pointer[Certificate]
	roots       *x509.CertPool
}

// serve runs a test with a server whose certificate was just created.
func serve(t *testing.T, handler http.Handler, test func(*served)) {
	synctest.Test(t, func(t *testing.T) {
		s := &served{t: t, listener: memorynet.Listen(), roots: x509.NewCertPool()}
		s.use(newCertificate(t, time.Now()))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Serve(ctx, s.listener, handler, func() (*tls.Certificate, error) { return s.certificate.Load().TLS(), nil }, slog.New(slog.DiscardHandler))
		}()
		test(s)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (s *served) use(c *Certificate) {
	s.certificate.Store(c)
	s.roots.AppendCertsFromPEM(c.CA)
}

// connect returns a connection without TLS.
func (s *served) connect() net.Conn {
	s.t.Helper()
	conn, err := s.listener.Dial(s.t.Context(), "tcp", Host)
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func (s *served) connectTLS(config *tls.Config) (*tls.Conn, error) {
	config.RootCAs, config.ServerName, config.Time = s.roots, Host, time.Now
	conn := tls.Client(s.connect(), config)
	return conn, conn.HandshakeContext(s.t.Context())
}

func nothing(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

func TestAConnectionHasTLS12AndTheCertificateOfTheMoment(t *testing.T) {
	serve(t, http.HandlerFunc(nothing), func(s *served) {
		for _, version := range []uint16{tls.VersionTLS11, tls.VersionTLS12, tls.VersionTLS13} {
			conn, err := s.connectTLS(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: version})
			if (err == nil) != (version >= tls.VersionTLS12) {
				s.t.Errorf("TLS version %x: %v", version, err)
			}
			_ = conn.Close()
		}
		s.use(newCertificate(s.t, time.Now()))
		conn, err := s.connectTLS(&tls.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		if !conn.ConnectionState().PeerCertificates[0].Equal(s.certificate.Load().TLS().Leaf) {
			s.t.Error("the server has its former certificate")
		}
		_ = conn.Close()
	})
}

func TestAClientThatStopsIsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want time.Duration
	}{
		"during the handshake":   {"", 5 * time.Second},
		"after a part of a head": {"POST / HTTP/1.1\r\nX: ", 5 * time.Second},
		"after a request":        {"POST / HTTP/1.1\r\nHost: x\r\n\r\n", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, http.HandlerFunc(nothing), func(s *served) {
				began, conn := time.Now(), s.connect()
				if test.text != "" {
					encrypted, err := s.connectTLS(&tls.Config{})
					if err == nil {
						_, err = io.WriteString(encrypted, test.text)
					}
					if err != nil {
						s.t.Fatal(err)
					}
					_ = conn.Close()
					conn = encrypted
				}
				_, _ = io.Copy(io.Discard, conn) // ends when the server closes the connection
				if took := time.Since(began); took != test.want {
					s.t.Errorf("closed after %s, want %s", took, test.want)
				}
				_ = conn.Close()
			})
		})
	}
}

func TestASlowRequestIsAnsweredInTime(t *testing.T) {
	h := newHandlerTest(Options{})
	serve(t, h, func(s *served) {
		conn, err := s.connectTLS(&tls.Config{})
		if err != nil {
			s.t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n", PathImages); err != nil {
			s.t.Fatal(err)
		}
		go func() {
			for {
				time.Sleep(time.Second)
				if _, err := conn.Write([]byte("x")); err != nil {
					return
				}
			}
		}()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			s.t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if took := time.Since(began); err != nil || took != bodyTimeout || !strings.Contains(string(answer), `"allowed":true`) {
			s.t.Errorf("after %s: %s, %v", took, answer, err)
		}
	})
}

func TestRequestsWithoutRoomAreAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandlerTest(Options{})
		for range maxSmall {
			h.bodies.small <- struct{}{}
		}
		began := time.Now()
		h.post(t, PathImages, []byte("{}"))
		if took := time.Since(began); took != slotTimeout || !strings.Contains(h.log.String(), "too many requests") {
			t.Errorf("after %s: %s", took, h.log.String())
		}
		<-h.bodies.small
		for range 2 { // a request frees its room, also if it cannot be read
			h.post(t, PathImages, []byte("{}"))
		}
		if len(h.results) != 3 || strings.Count(h.log.String(), "WARN") != 1 || len(h.bodies.small) != maxSmall-1 {
			t.Errorf("results %v, %d in use, log %s", h.results, len(h.bodies.small), h.log.String())
		}
	})
}
