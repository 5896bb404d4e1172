package loadbalancertest_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
	loadbalancertest "github.com/replicatedhq/ekco/test/loadbalancer"
)

// reloading is an HAProxy as in its container: a master with a worker, that sees a single file, which is
// written in its place.
type reloading struct {
	t       testing.TB
	haproxy loadbalancertest.HAProxy
	// port is that of the primaries, frontend HAProxy's.
	port, frontend int
	config         string
	master         *child.Process
	// dies is the index of the primary that the test stops, or nobody.
	dies int
	// led is when it last came to lead elsewhere.
	led time.Time
}

const nobody = -1

// startReloading starts one that leads to these primaries, of which one may be about to die.
func startReloading(t testing.TB, haproxy loadbalancertest.HAProxy, port, dies int, addresses ...string) *reloading {
	t.Helper()
	r := &reloading{t: t, haproxy: haproxy, port: port, dies: dies, frontend: freePort(t), config: filepath.Join(t.TempDir(), "haproxy.cfg")}
	name := r.write(addresses...)
	script, err := filepath.Abs("master.sh")
	if err != nil {
		t.Fatal(err)
	}
	r.master = child.Start(t, "unshare", "--mount", script, filepath.Dir(haproxy.Path), t.TempDir(), r.config)
	await.Until(t, await.HangTimeout, "HAProxy runs with "+name, func() (bool, string) {
		return loadbalancer.RunsWith(r.master.Output.String(), name), r.master.Output.Tail(500)
	})
	r.led = time.Now()
	return r
}

// write writes a configuration, and returns the backend's name in it.
func (r *reloading) write(addresses ...string) string {
	r.t.Helper()
	text, err := loadbalancer.Config(addresses)
	if err != nil {
		r.t.Fatal(err)
	}
	name := loadbalancer.Backend(text)
	text = strings.ReplaceAll(text, fmt.Sprint(":", loadbalancer.Port), fmt.Sprint(":", r.frontend))
	text = strings.ReplaceAll(text, ":6443 ", fmt.Sprintf(":%d ", r.port))
	// Checks that a busy machine is late to answer shall not take out a primary.
	for i := range addresses {
		if i != r.dies {
			text = regexp.MustCompile(fmt.Sprintf(`(k8s-primary-%d .*) fall 2 `, i)).ReplaceAllString(text, "$1 fall 1000 ")
		}
	}
	if err := durable.Overwrite(r.config, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// signalAgain is after how long it is told again: a signal that comes while it still ends a reload may be
// lost.
const signalAgain = time.Second

// lead has it lead to other primaries.
func (r *reloading) lead(addresses ...string) (name string) {
	r.t.Helper()
	name = r.write(addresses...)
	told := time.Time{}
	await.Until(r.t, await.HangTimeout, "HAProxy runs with "+name, func() (bool, string) {
		if time.Since(told) > signalAgain {
			if err := syscall.Kill(r.master.PID(), syscall.SIGHUP); err != nil {
				r.t.Fatal(err)
			}
			if !told.IsZero() {
				r.t.Logf("a signal was lost, %s after the last reload", told.Sub(r.led).Round(time.Millisecond))
			}
			told = time.Now()
		}
		return loadbalancer.RunsWith(r.master.Output.String(), name), r.master.Output.Tail(500)
	})
	r.led = time.Now()
	return name
}

func TestAReloadReadsTheOneMountedFileSaysSoAndCutsNothing(t *testing.T) {
	t.Parallel()
	for _, haproxy := range haproxies {
		t.Run(haproxy.Version, func(t *testing.T) {
			t.Parallel()
			_, port := serve(t, "127.0.0.1", "127.0.0.2")
			r := startReloading(t, haproxy, port, nobody, "127.0.0.1")
			client := &http.Client{Timeout: await.HangTimeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			defer client.CloseIdleConnections()
			if reused, err := again(t, client, r.frontend); err != nil || reused {
				t.Fatalf("%v, %v", reused, err)
			}
			for _, addresses := range [][]string{{"127.0.0.1", "127.0.0.2"}, {"127.0.0.2"}, {"127.0.0.2", "127.0.0.1"}} {
				name := r.lead(addresses...)
				for i := range addresses {
					await.Until(t, await.HangTimeout, "HAProxy knows each of the primaries", func() (bool, string) {
						return strings.Contains(r.master.Output.String(), fmt.Sprintf("server %s/k8s-primary-%d ", name, i)), r.master.Output.Tail(500)
					})
				}
				if reused, err := again(t, client, r.frontend); err != nil || !reused {
					t.Errorf("what was connected is cut by the reload: %v", err)
				}
			}
			r.master.Stop(await.HangTimeout)
		})
	}
}

// TestOfThousandsOfRequestsNoneFailsWhileItReloadsAgainAndAgain: each on a connection of its own, beside one
// that is open the whole time.
func TestOfThousandsOfRequestsNoneFailsWhileItReloadsAgainAndAgain(t *testing.T) {
	t.Parallel()
	const requests, reloads, clients = 2000, 20, 4
	haproxy := haproxies[len(haproxies)-1]
	_, port := serve(t, "127.0.0.1", "127.0.0.2")
	r := startReloading(t, haproxy, port, nobody, "127.0.0.1", "127.0.0.2")
	open := &http.Client{Timeout: await.HangTimeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer open.CloseIdleConnections()
	if _, err := again(t, open, r.frontend); err != nil {
		t.Fatal(err)
	}
	var asked, failed atomic.Int64
	var asking sync.WaitGroup
	began := time.Now()
	for range clients {
		asking.Go(func() {
			client := &http.Client{Timeout: await.HangTimeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			for asked.Add(1) <= requests {
				if _, err := again(t, client, r.frontend); err != nil {
					failed.Add(1)
					t.Log(err)
				}
			}
		})
	}
	for i := range reloads {
		await.Until(t, await.HangTimeout, "it is asked again", func() (bool, string) {
			return asked.Load() >= int64(i*requests/reloads), fmt.Sprint(asked.Load())
		})
		if i%2 == 0 {
			r.lead("127.0.0.2", "127.0.0.1")
			continue
		}
		r.lead("127.0.0.1", "127.0.0.2")
	}
	under := min(asked.Load(), requests)
	asking.Wait()
	if failed.Load() > 0 {
		t.Errorf("%d of %d requests failed", failed.Load(), requests)
	}
	if reused, err := again(t, open, r.frontend); err != nil || !reused {
		t.Errorf("what was connected is cut by the reloads: %v", err)
	}
	t.Logf("%d reloads while %d requests were answered, of %d in %s", reloads, under, requests, time.Since(began).Round(time.Millisecond))
	r.master.Stop(await.HangTimeout)
}

// TestAnAPIServerThatDiesIsPassedOver: no request fails once HAProxy has noticed, as it does after two checks.
func TestAnAPIServerThatDiesIsPassedOver(t *testing.T) {
	t.Parallel()
	primaries, port := serve(t, "127.0.0.1", "127.0.0.2")
	r := startReloading(t, haproxies[len(haproxies)-1], port, 0, "127.0.0.1", "127.0.0.2")
	client := &http.Client{Timeout: await.HangTimeout, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if _, err := again(t, client, r.frontend); err != nil {
		t.Fatal(err)
	}
	const down = "/k8s-primary-0 is DOWN"
	before := strings.Count(r.master.Output.String(), down)
	primaries[0].ends()
	failed := 0
	await.Until(t, await.HangTimeout, "HAProxy has noticed", func() (bool, string) {
		if _, err := again(t, client, r.frontend); err != nil {
			failed++
		}
		return strings.Count(r.master.Output.String(), down) > before, r.master.Output.Tail(500)
	})
	t.Logf("%d requests failed before", failed)
	for range 20 {
		if _, err := again(t, client, r.frontend); err != nil {
			t.Error(err)
		}
	}
	r.master.Stop(await.HangTimeout)
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
