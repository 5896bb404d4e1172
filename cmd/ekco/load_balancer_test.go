package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/internal/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/await"
)

// TestInThePodOfAHostTaskTheFilesOfTheHostAreWritten, the manifest only where an image is given.
func TestInThePodOfAHostTaskTheFilesOfTheHostAreWritten(t *testing.T) {
	d, host := newDesk(t, nil), loadbalancer.Host{Etc: t.TempDir()}
	for _, test := range []struct{ image, want string }{
		{"", `ekco-outcome {"result":{"backend":"kubernetes-primaries-`},
		{"--image=haproxy:1", `"image":"haproxy:1","version":"0","manifest":true}}`},
		{"--image=haproxy:2 --keep-manifest", `"image":"haproxy:1","version":"0"}}`},
		{"--image=haproxy:2 --tcp-probe", `"image":"haproxy:2","version":"0-tcp","manifest":true}}`},
		{"--image=a b", `ekco-outcome {"failed":"image \"a b\" is not valid`},
	} {
		args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1,fd00::2"}
		if test.image != "" {
			image, keep, kept := strings.Cut(test.image, " --")
			if args = append(args, image); kept {
				args = append(args, "--"+keep)
			}
		}
		d.expect(d.types(args...), exitDone, test.want, "")
		if strings.Count(d.out.String(), "\n") != 1 || d.errOut.Len() != 0 {
			t.Errorf("it says %s%s", d.out, d.errOut)
		}
		if test.image == "" {
			if _, err := os.Stat(host.ManifestPath()); !os.IsNotExist(err) {
				t.Errorf("the manifest: %v", err)
			}
		}
	}
	config, err := os.ReadFile(host.ConfigPath())
	if err != nil || strings.Count(string(config), "\n    server ") != 2 {
		t.Errorf("%v: %s", err, config)
	}
}

// balancerHost returns a host with HAProxy, and a server that has the certificate of its kubeconfig's server.
func balancerHost(t *testing.T, answer http.Handler) (*desk, loadbalancer.Host, *httptest.Server) {
	t.Helper()
	d, host := newDesk(t, nil), loadbalancer.Host{Etc: t.TempDir()}
	d.env[hosttask.EnvNode], d.env[hosttask.EnvNamespace], d.env[hosttask.EnvPod] = "w1", "kurl", "task-1"
	if _, err := host.Write(t.Context(), []string{"10.0.0.1"}, "haproxy:1"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(answer)
	t.Cleanup(server.Close)
	if err := os.WriteFile(filepath.Join(host.Etc, "kubernetes", "kubelet.conf"), []byte(kubeletOf(server, "https://example.com:6444")), 0o600); err != nil {
		t.Fatal(err)
	}
	return d, host, server
}

// TestHostTaskAsksForItsPodThroughHAProxy, here at once: nothing answers.
func TestHostTaskAsksForItsPodThroughHAProxy(t *testing.T) {
	d, host, _ := balancerHost(t, http.NotFoundHandler())
	args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1", "--image=haproxy:2", "--trial=1ms"}
	d.expect(d.types(args...), exitDone, "read pod kube-system/haproxy-w1 from the API server at 127.0.0.1:6444: ", "")
}

// TestOnlyAPodThatWasStartedAfterTheManifestWasWrittenIsConfirmed: that of an earlier try may have the same image.
func TestOnlyAPodThatWasStartedAfterTheManifestWasWrittenIsConfirmed(t *testing.T) {
	for since, confirmed := range map[time.Duration]bool{-time.Minute: false, time.Second: true} {
		d, host, server := balancerHost(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "haproxy:1"}}}}
			running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(since))}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "haproxy", State: corev1.ContainerState{Running: running}}}
			if err := json.NewEncoder(w).Encode(pod); err != nil {
				t.Error(err)
			}
		}))
		within := 300 * time.Millisecond
		if confirmed {
			within = time.Minute // on a busy host
		}
		trial := balancerTrial{env: d.app.env, host: host, address: server.Listener.Addr().String(), within: within}
		if err := trial.awaitNewPod(t.Context(), journal.LoadBalancerOnNode{Image: "haproxy:1", Version: "0", Manifest: true}); (err == nil) != confirmed {
			t.Errorf("started %s after the manifest was written: %v", since, err)
		}
		for _, written := range []time.Duration{-time.Hour, 0} { // without a restart, HAProxy may run with an older configuration
			err := trial.worksFunc(t.Context())(journal.LoadBalancerOnNode{Image: "haproxy:1", Version: "0"}, time.Now().Add(written))
			if works := confirmed || written < 0; (err == nil) != works {
				t.Errorf("started %s from now, with files written %s from now: %v", since, written, err)
			}
		}
	}
}

func TestTheConfiguredTrialIsGivenToTheHostTask(t *testing.T) {
	capability := loadBalancersOf(cluster{cfg: config.Config{LoadBalancer: config.LoadBalancer{InternalLoadBalancerTrial: 2 * time.Minute}}})
	definitions := capability.Actions(nil)
	i := slices.IndexFunc(definitions, func(d actions.Definition) bool { return d.Kind == journal.ActionRestartLoadBalancer })
	plan, err := definitions[i].Plan(t.Context(), journal.ActionRecord{
		ID: "x", Kind: journal.ActionRestartLoadBalancer, Subject: journal.LoadBalancer("w1"),
		Request: journal.ActionRequested{Input: journal.LoadBalancerInput{Primaries: []string{"10.0.0.1"}, Image: "haproxy:1"}},
	})
	if err != nil || !strings.Contains(string(plan.Steps[0].Input), `"--trial=2m0s"`) {
		t.Errorf("%v: %+v", err, plan.Steps)
	}
}

// TestHostTaskThatIsEndedRestoresHAProxysFiles: no API server answers through HAProxy here.
func TestHostTaskThatIsEndedRestoresHAProxysFiles(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) { restoresAtSignal(t, signal) })
	}
}

func restoresAtSignal(t *testing.T, signal syscall.Signal) {
	d, host, _ := balancerHost(t, http.NotFoundHandler())
	var before [2][]byte
	for i, path := range []string{host.ConfigPath(), host.ManifestPath()} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before[i] = content
	}
	var ending sync.WaitGroup
	defer ending.Wait()
	ending.Go(func() {
		await.Until(t, await.HangTimeout, "the new manifest is there", func() (bool, string) {
			content, err := os.ReadFile(host.ManifestPath())
			return strings.Contains(string(content), "haproxy:2"), fmt.Sprint(err)
		})
		if err := syscall.Kill(os.Getpid(), signal); err != nil {
			t.Error(err)
		}
	})
	args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1,10.0.0.2", "--image=haproxy:2", "--trial=1h"}
	d.expect(d.types(args...), exitDone, `ekco-outcome {"failed":"HAProxy (image haproxy:2) was not confirmed to work`, "")
	for i, path := range []string{host.ConfigPath(), host.ManifestPath()} {
		if content, err := os.ReadFile(path); err != nil || !bytes.Equal(content, before[i]) {
			t.Errorf("%v: %s has %s", err, path, content)
		}
	}
}

// TestAHostThatNoPrimaryAnswersKeepsItsConfiguration: HAProxy would cut it off.
func TestAHostThatNoPrimaryAnswersKeepsItsConfiguration(t *testing.T) {
	d, host, _ := balancerHost(t, http.NotFoundHandler())
	args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=127.0.0.1,::1", "--ask-first"}
	d.expect(d.types(args...), exitDone, `ekco-outcome {"failed":"write `+host.ConfigPath()+`: no API server answers this node at 127.0.0.1:6443, [::1]:6443`, "")
	config, err := os.ReadFile(host.ConfigPath())
	if err != nil || !strings.Contains(string(config), "10.0.0.1:6443") {
		t.Errorf("%v: %s", err, config)
	}
}

// formerConfig expects that the host has the configuration with one primary or with two, and no copies.
func formerConfig(t *testing.T, host loadbalancer.Host, former bool) {
	t.Helper()
	config, err := os.ReadFile(host.ConfigPath())
	if err != nil || strings.Contains(string(config), "10.0.0.2:6443") == former {
		t.Errorf("former %v: %v: %s", former, err, config)
	}
	if copies, err := filepath.Glob(filepath.Join(host.Etc, "haproxy", "*"+durable.FormerSuffix)); err != nil || len(copies) > 0 {
		t.Errorf("%v: left is %q", err, copies)
	}
}

const (
	reported = `ekco-outcome {"waits":true,"result":{"backend":"kubernetes-primaries-`
	restored = `the former configuration and manifest were restored","worse":true}`
)

// TestHostTaskKeepsAConfigurationIfNoAPIServerAnsweredBefore: the former one may be why.
func TestHostTaskKeepsAConfigurationIfNoAPIServerAnsweredBefore(t *testing.T) {
	for _, more := range [][]string{{}, {"--image=haproxy:2", "--keep-manifest"}} {
		d, host, _ := balancerHost(t, http.NotFoundHandler())
		args := append([]string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1,10.0.0.2", "--trial=1ms"}, more...)
		d.expect(d.types(args...), exitDone, `ekco-outcome {"result":{"backend":`, "")
		if strings.Count(d.out.String(), "\n") != 1 {
			t.Errorf("%q: it says %s", more, d.out)
		}
		formerConfig(t, host, false)
	}
}

// TestHostTaskTriesOnlyAChangedConfiguration: there is nothing to wait for.
func TestHostTaskTriesOnlyAChangedConfiguration(t *testing.T) {
	d, host, _ := balancerHost(t, http.NotFoundHandler())
	d.expect(d.types(hostTaskCommand, hostTaskBalancer, "--host-etc-dir="+host.Etc, "--primary-host=10.0.0.1", "--trial=1ms"), exitDone, `ekco-outcome {"result":{"backend":`, "")
	if strings.Count(d.out.String(), "\n") != 1 {
		t.Errorf("it says %s", d.out)
	}
	formerConfig(t, host, true)
}

// TestAConfigurationAloneIsTriedIfAnAPIServerAnswersBefore, and a manifest in any case.
func TestAConfigurationAloneIsTriedIfAnAPIServerAnswersBefore(t *testing.T) {
	for status, timeout := range map[int]time.Duration{http.StatusOK: time.Hour, http.StatusServiceUnavailable: 10 * time.Millisecond} {
		tried := status == http.StatusOK
		d, host, server := balancerHost(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte("{}"))
		}))
		for within, tries := range map[time.Duration]bool{0: false, timeout: true} {
			for manifest, want := range map[bool]bool{true: tries, false: tries && tried} {
				trial := balancerTrial{env: d.app.env, host: host, address: server.Listener.Addr().String(), within: within, manifest: manifest}
				ctx, cancel := context.WithTimeoutCause(t.Context(), answerTimeout/2, errors.New("it waits longer than the trial"))
				if got := trial.confirm(ctx) != nil; got != want || ctx.Err() != nil {
					t.Errorf("with answer %d, %s and a manifest %t, it is tried: %t, %v", status, within, manifest, got, context.Cause(ctx))
				}
				cancel()
			}
		}
	}
}

// TestWithoutHAProxyNothingIsAwaited: there is no former configuration to go back to.
func TestWithoutHAProxyNothingIsAwaited(t *testing.T) {
	d, host, _ := balancerHost(t, http.NotFoundHandler())
	if err := os.Remove(host.ManifestPath()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), answerTimeout/2, errors.New("it waits"))
	defer cancel()
	trial := balancerTrial{env: d.app.env, host: host, address: "127.0.0.1:1", within: time.Hour}
	if confirm := trial.confirm(ctx); confirm != nil || ctx.Err() != nil {
		t.Errorf("it is tried: %t, %v", confirm != nil, context.Cause(ctx))
	}
}

// waiting is the output of a program, which closes the channel when the program has reported that it waits.
type waiting struct {
	bytes.Buffer
	reported chan struct{}
}

func (w *waiting) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte(reported)) {
		close(w.reported)
	}
	return w.Buffer.Write(p)
}

// TestHostTaskKeepsAConfigurationOnlyOnceItIsConfirmed, also if it is asked to end before.
func TestHostTaskKeepsAConfigurationOnlyOnceItIsConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		told   string // by EKCO
		ended  bool
		says   string // empty if it keeps the configuration
	}{
		"it is confirmed":                {http.StatusOK, "true", false, ""},
		"it is not":                      {http.StatusOK, "", false, "EKCO has not set the annotation ekco.kurl.sh/confirmed"},
		"it is not, with a reason":       {http.StatusOK, "HAProxy is silent", false, "EKCO could not verify the change: HAProxy is silent"},
		"it is not, and asked to end":    {http.StatusOK, "", true, "context canceled"},
		"the API server refuses to tell": {http.StatusUnauthorized, "true", false, "it answers 401"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var asked atomic.Int32
			d, host, server := balancerHost(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) > 1 {
					cancel(context.DeadlineExceeded) // as if the trial were over: the first answer was read
				}
				if r.URL.Path != "/api/v1/namespaces/kurl/pods/task-1" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
				if test.told != "" {
					pod.Annotations[hosttask.AnnotationConfirmed] = test.told
				}
				w.WriteHeader(test.status)
				if err := json.NewEncoder(w).Encode(pod); err != nil {
					t.Error(err)
				}
			}))
			manifest, err := os.ReadFile(host.ManifestPath())
			if err != nil {
				t.Fatal(err)
			}
			out := &waiting{reported: make(chan struct{})}
			if test.ended {
				var ending sync.WaitGroup
				defer ending.Wait()
				ending.Go(func() { <-out.reported; cancel(nil) })
			}
			host.Confirm = balancerTrial{env: d.app.env, out: out, host: host, address: server.Listener.Addr().String(), within: time.Hour}.awaitConfirmation
			_, err = host.WriteConfig(ctx, []string{"10.0.0.1", "10.0.0.2"})
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("%v; it says %s", err, out)
			}
			formerConfig(t, host, test.says != "")
			now, err := os.ReadFile(host.ManifestPath())
			if restarts := !bytes.Equal(now, manifest); err != nil || restarts != (test.says != "") {
				t.Errorf("%v: the kubelet restarts HAProxy: %t", err, restarts)
			}
		})
	}
}

// TestUnverifiableConfigurationIsRestoredAtOnce: without a kubeconfig, or an output to report to.
func TestUnverifiableConfigurationIsRestoredAtOnce(t *testing.T) {
	d, host, server := balancerHost(t, http.NotFoundHandler())
	address := server.Listener.Addr().String()
	for want, confirm := range map[string]func(context.Context, journal.LoadBalancerOnNode) error{
		"no such file or directory": balancerTrial{env: d.app.env, out: d.out, host: loadbalancer.Host{Etc: t.TempDir()}, address: address, within: time.Hour}.awaitConfirmation,
		"no space left on device":   balancerTrial{env: d.app.env, out: deaf{}, host: host, address: address, within: time.Hour}.awaitConfirmation,
	} {
		host.Confirm = confirm
		if _, err := host.WriteConfig(t.Context(), []string{"10.0.0.1", "10.0.0.2"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		formerConfig(t, host, true)
	}
}

// deaf is an output that takes nothing.
type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestOnlyTheAnnotationTrueConfirmsAConfiguration, and that is not awaited for longer than the trial.
func TestOnlyTheAnnotationTrueConfirmsAConfiguration(t *testing.T) {
	d, host, server := balancerHost(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{hosttask.AnnotationConfirmed: "false"}}}
		if err := json.NewEncoder(w).Encode(pod); err != nil {
			t.Error(err)
		}
	}))
	ctx, cancel := context.WithTimeoutCause(t.Context(), answerTimeout/2, errors.New("it waits longer than the trial"))
	defer cancel()
	trial := balancerTrial{env: d.app.env, out: d.out, host: host, address: server.Listener.Addr().String(), within: 300 * time.Millisecond}
	if err := trial.awaitConfirmation(ctx, journal.LoadBalancerOnNode{}); err == nil || ctx.Err() != nil {
		t.Errorf("it is confirmed: %v, %v", err, context.Cause(ctx))
	}
}

// TestAnUnchangedManifestIsNotTried: HAProxy is not restarted.
func TestAnUnchangedManifestIsNotTried(t *testing.T) {
	d, host, _ := balancerHost(t, http.NotFoundHandler())
	trial := balancerTrial{env: d.app.env, host: host, address: "127.0.0.1:1", within: time.Millisecond}
	if err := trial.awaitNewPod(t.Context(), journal.LoadBalancerOnNode{Config: true}); err != nil {
		t.Error(err)
	}
}

// TestTrialRestoresFormerFilesFirst: here they are also the wanted ones. Nothing answers that HAProxy works with the
// others.
func TestTrialRestoresFormerFilesFirst(t *testing.T) {
	const asked = 500 * time.Millisecond
	d, host, _ := balancerHost(t, http.NotFoundHandler())
	if err := os.Rename(host.ConfigPath(), host.ConfigPath()+durable.FormerSuffix); err != nil {
		t.Fatal(err)
	}
	if _, err := host.WriteConfig(t.Context(), []string{"10.0.0.9"}); err != nil {
		t.Fatal(err)
	}
	args := []string{hostTaskCommand, hostTaskBalancer, "--host-etc-dir=" + host.Etc, "--primary-host=10.0.0.1", "--trial=" + asked.String()}
	began := time.Now()
	d.expect(d.types(args...), exitDone, `"image":"haproxy:1","version":"0"}}`, "")
	if took := time.Since(began); took < 2*asked { // first whether the changed files work, and then whether an API server answers
		t.Errorf("after %s nobody can have asked for %s whether HAProxy works", took, asked)
	}
	if strings.Contains(d.out.String(), `"config":true`) {
		t.Error(d.out.String())
	}
}
