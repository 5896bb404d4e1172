// Package apiproxy puts a proxy between EKCO and a real API server, so that a test can see and stop requests.
package apiproxy

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy is a proxy in front of an API server. It ends with the test.
type Proxy struct {
	url string
	// ca is the certificate to trust, as PEM.
	ca []byte
}

// Protocol is the protocol that the proxy uses on both sides.
type Protocol string

const (
	// HTTP1 lets a test hijack the connection of a request.
	HTTP1 Protocol = "http/1.1"
	// HTTP2 is the protocol that the API server itself uses.
	HTTP2 Protocol = "h2"
)

// Start starts a proxy to the API server of config. It does not use config's credentials, because clients send their
// own. around is called with every request first, and decides whether to call next.
func Start(tb testing.TB, config *rest.Config, protocol Protocol, around func(next http.Handler) http.Handler) *Proxy {
	tb.Helper()
	transport, err := rest.TransportFor(&rest.Config{Host: config.Host, TLSClientConfig: rest.TLSClientConfig{
		CAData: config.CAData, CAFile: config.CAFile, NextProtos: []string{string(protocol)},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		tb.Fatal(err)
	}
	upstream := httputil.NewSingleHostReverseProxy(target)
	upstream.Transport = transport
	upstream.FlushInterval = -1
	server := httptest.NewUnstartedServer(around(upstream))
	server.EnableHTTP2 = protocol == HTTP2
	server.StartTLS() // client-go sends a token only over TLS
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &Proxy{
		url: server.URL,
		ca:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// Redirect changes a kubeconfig to use the proxy.
func (p *Proxy) Redirect(tb testing.TB, kubeconfig string) {
	tb.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		tb.Fatal(err)
	}
	for _, entry := range config.Clusters {
		entry.Server, entry.CertificateAuthority, entry.CertificateAuthorityData = p.url, "", p.ca
	}
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		tb.Fatal(err)
	}
}
