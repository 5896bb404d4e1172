package loadbalancertest_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// TestAReloadReadsTheOneMountedFileSaysSoAndCutsNothing: as in its container, HAProxy sees a single
// file, which is written in its place.
func TestAReloadReadsTheOneMountedFileSaysSoAndCutsNothing(t *testing.T) {
	for _, haproxy := range haproxies {
		t.Run(haproxy.Version, func(t *testing.T) {
			t.Parallel()
			_, port := serve(t, "127.0.0.1", "127.0.0.2")
			frontend, dir := freePort(t), t.TempDir()
			config := filepath.Join(dir, "haproxy.cfg")
			// write returns the backend's name in what it has written.
			write := func(addresses ...string) string {
				text, err := loadbalancer.Config(addresses)
				if err != nil {
					t.Fatal(err)
				}
				name := loadbalancer.Backend(text)
				text = strings.ReplaceAll(text, fmt.Sprint(":", loadbalancer.Port), fmt.Sprint(":", frontend))
				text = strings.ReplaceAll(text, ":6443 ", fmt.Sprintf(":%d ", port))
				if err := durable.Overwrite(config, []byte(haproxy.Known(text)), 0o644); err != nil {
					t.Fatal(err)
				}
				return name
			}
			name := write("127.0.0.1")
			script, err := filepath.Abs("master.sh")
			if err != nil {
				t.Fatal(err)
			}
			master := child.Start(t, "unshare", "--mount", script, filepath.Dir(haproxy.Path), t.TempDir(), config)
			runsWith := func(name string) {
				t.Helper()
				await.Until(t, 30*time.Second, "HAProxy runs with "+name, func() (bool, string) {
					return loadbalancer.Has(master.Output.String(), name), master.Output.Tail(500)
				})
			}
			runsWith(name)
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			if reused, err := again(t, client, frontend); err != nil || reused {
				t.Fatalf("%v, %v", reused, err)
			}
			for _, addresses := range [][]string{{"127.0.0.1", "127.0.0.2"}, {"127.0.0.2"}, {"127.0.0.2", "127.0.0.1"}} {
				name := write(addresses...)
				if err := syscall.Kill(master.PID(), syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
				runsWith(name)
				for i := range addresses {
					await.Until(t, 30*time.Second, "HAProxy knows each of the primaries", func() (bool, string) {
						return strings.Contains(master.Output.String(), fmt.Sprintf("server %s/k8s-primary-%d ", name, i)), master.Output.Tail(500)
					})
				}
				if reused, err := again(t, client, frontend); err != nil || !reused {
					t.Errorf("what was connected is cut by the reload: %v", err)
				}
			}
			master.Stop(30 * time.Second)
		})
	}
}

// again asks once more, and reports whether that was on a connection that there was.
func again(t *testing.T, client *http.Client, port int) (reused bool, err error) {
	t.Helper()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/", port), http.NoBody)
	if err != nil {
		return false, err
	}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return reused, err
}
