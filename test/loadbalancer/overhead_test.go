package loadbalancertest_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// BenchmarkRequest asks an API server's stand-in through the balancer and directly, in turn, so that both
// have the same moments of the machine: on connections that are kept, as clients of the API have them, and
// each time on a new one. It reports the medians and the 99th percentiles of the way through the balancer,
// and what they are of the direct way's.
func BenchmarkRequest(b *testing.B) {
	addresses := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	for _, haproxy := range haproxies {
		_, port := serve(b, addresses...)
		balancer := startReloading(b, haproxy, port, nobody, addresses...)
		for name, anew := range map[string]bool{"kept": false, "new": true} {
			b.Run(fmt.Sprintf("HAProxy=%s/connection=%s", haproxy.Version, name), func(b *testing.B) {
				through, direct := newAsker(b, balancer.frontend, anew), newAsker(b, port, anew)
				for range 100 { // connections are made, and all is warm
					through.ask(b)
					direct.ask(b)
				}
				through.took, direct.took = nil, nil
				for b.Loop() {
					through.ask(b)
					direct.ask(b)
				}
				for _, at := range []int{50, 99} {
					b.ReportMetric(float64(through.percentile(at))/float64(time.Microsecond), fmt.Sprintf("p%d-us", at))
					b.ReportMetric(float64(through.percentile(at))/float64(direct.percentile(at)), fmt.Sprintf("p%d-of-direct", at))
				}
				b.ReportMetric(0, "ns/op") // it is of both ways together
			})
		}
	}
}

// asker asks at one port, and keeps how long the answers took.
type asker struct {
	client *http.Client
	url    string
	took   []time.Duration
}

func newAsker(b *testing.B, port int, anew bool) *asker {
	b.Helper()
	transport := &http.Transport{DisableKeepAlives: anew, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	b.Cleanup(transport.CloseIdleConnections)
	return &asker{client: &http.Client{Transport: transport, Timeout: 5 * time.Second}, url: "https://" + net.JoinHostPort("127.0.0.1", fmt.Sprint(port))}
}

func (a *asker) ask(b *testing.B) {
	b.Helper()
	began := time.Now()
	response, err := a.client.Get(a.url)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		b.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		b.Fatal(err)
	}
	a.took = append(a.took, time.Since(began))
}

func (a *asker) percentile(at int) time.Duration {
	slices.Sort(a.took)
	return a.took[(len(a.took)-1)*at/100]
}
