package loadbalancertest_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// primary stands for an API server: it says on which address it is, and whether it is ready.
type primary struct {
	// status is its HTTP status for a health check; 0 means 200.
	status atomic.Int32
	// asked is how it was asked for its health last.
	asked atomic.Value
	// ends stops it.
	ends func()
}

func (p *primary) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/readyz" {
		_, _ = io.WriteString(w, r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).IP.String())
		return
	}
	p.asked.Store(r.Method + " " + r.Proto)
	if status := int(p.status.Load()); status != 0 {
		w.WriteHeader(status)
	}
}

// serve starts primaries, each on an address of its own, on one port for all.
func serve(t testing.TB, addresses ...string) (primaries []*primary, port int) {
	t.Helper()
	port = freePort(t)
	for _, address := range addresses {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(address, fmt.Sprint(port)))
		if err != nil {
			t.Fatal(err)
		}
		p := new(primary)
		server := httptest.NewUnstartedServer(p)
		if err := server.Listener.Close(); err != nil {
			t.Fatal(err)
		}
		server.Listener = listener
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
		server.StartTLS()
		t.Cleanup(server.Close)
		p.ends = server.Close
		primaries = append(primaries, p)
	}
	return primaries, port
}

// lowestPort and highestPort limit the ports of these tests: Linux takes the local ports of outgoing connections
// from 32768 on, so that no client has one when a program comes to listen there.
const lowestPort, highestPort = 20000, 32000

// ports counts those that this process has given away.
var ports atomic.Int32

// freePort returns a port that nothing listens on, and that no other test of this process has.
func freePort(t testing.TB) int {
	t.Helper()
	for {
		port := lowestPort + int(ports.Add(1))
		if port > highestPort {
			t.Fatal("no free port")
		}
		if child.Free(t.Context(), fmt.Sprint("[::]:", port)) == nil {
			return port
		}
	}
}

// ask asks through the balancer, each time on a connection of its own, and returns how often which
// primary answered.
func ask(ctx context.Context, port int) (string, error) {
	answers := map[string]int{}
	for i := range 12 {
		at := []string{"127.0.0.1", "::1"}[i%2]
		client := &http.Client{Timeout: await.HangTimeout, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(at, fmt.Sprint(port)), http.NoBody)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Sprint(answers), err
		}
		answer, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return fmt.Sprint(answers), err
		}
		answers[string(answer)]++
	}
	return fmt.Sprint(answers), nil
}

// TestHAProxyLeadsToThePrimariesThatAreReady, in turn, from IPv4 and IPv6.
func TestHAProxyLeadsToThePrimariesThatAreReady(t *testing.T) {
	t.Parallel()
	for _, haproxy := range haproxies {
		t.Run(haproxy.Version, func(t *testing.T) {
			t.Parallel()
			addresses := []string{"127.0.0.1", "127.0.0.2", "::1"}
			primaries, port := serve(t, addresses...)
			primaries[0].status.Store(http.StatusUnauthorized) // as with --anonymous-auth=false
			text, err := loadbalancer.Config(addresses)
			if err != nil {
				t.Fatal(err)
			}
			// What is there on the machine is left alone.
			frontend := freePort(t)
			text = strings.ReplaceAll(text, fmt.Sprint(":", loadbalancer.Port), fmt.Sprint(":", frontend))
			text = strings.ReplaceAll(text, ":6443 ", fmt.Sprintf(":%d ", port))
			config := filepath.Join(t.TempDir(), "haproxy.cfg")
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			process := child.Start(t, haproxy.Path, "-db", "-f", config)
			answered := func(want string) {
				t.Helper()
				await.Until(t, await.HangTimeout, "HAProxy leads to "+want, func() (bool, string) {
					got, err := ask(t.Context(), frontend)
					return err == nil && got == want, fmt.Sprint(got, " ", err)
				})
			}
			answered("map[127.0.0.1:4 127.0.0.2:4 ::1:4]")
			for _, p := range primaries {
				await.Until(t, await.HangTimeout, "its health is asked for", func() (bool, string) {
					asked, _ := p.asked.Load().(string)
					return asked == "GET HTTP/1.0", asked
				})
			}
			primaries[1].status.Store(http.StatusInternalServerError)
			answered("map[127.0.0.1:6 ::1:6]")
			primaries[1].status.Store(http.StatusOK)
			primaries[2].status.Store(http.StatusInternalServerError)
			answered("map[127.0.0.1:6 127.0.0.2:6]")
			primaries[2].status.Store(http.StatusOK)
			answered("map[127.0.0.1:4 127.0.0.2:4 ::1:4]")
			log := process.Output.String()
			for _, want := range []string{
				// The first look at each tells which configuration it runs with.
				"Health check for server " + loadbalancer.Backend(text) + "/k8s-primary-0 ",
				"k8s-primary-0 succeeded, reason: Layer7 check passed, code: 401,",
				// Two failures take it out, and three successes bring it back.
				"k8s-primary-1 failed, reason: Layer7 wrong status, code: 500,", "status: 1/2 UP.", "status: 0/3 DOWN.",
				"k8s-primary-2 succeeded, reason: Layer7 check passed, code: 200,", "status: 2/3 DOWN.",
				"\nServer " + loadbalancer.Backend(text) + "/k8s-primary-1 is DOWN.", "\nServer " + loadbalancer.Backend(text) + "/k8s-primary-2 is UP.",
			} {
				if !strings.Contains(log, want) {
					t.Errorf("HAProxy does not log %q", want)
				}
			}
			if strings.Contains(log, "kubernetes-api ") {
				t.Error("HAProxy logs connections")
			}
		})
	}
}
