package primary_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
)

// probed replaces the probe in the API server's manifest by these lines, and adds a flag.
func (w *world) probed(lines, flag string) {
	manifest := w.Read("manifests/kube-apiserver.yaml")
	before, _, _ := bytes.Cut(manifest, []byte("    ports: "))
	w.Write("manifests/kube-apiserver.yaml", 0o600, append(bytes.Replace(before, []byte("--v=2"), []byte("--v=2, "+flag), 1), lines...))
}

func TestAnAPIServerOfAnyProbeIsRestartedOnce(t *testing.T) {
	for name, probe := range map[string]string{
		"no probe":  "",
		"exec":      "    livenessProbe: {exec: {command: [\"true\"]}}\n",
		"tcpSocket": "    livenessProbe: {tcpSocket: {port: 6443}}\n    readinessProbe: {tcpSocket: {port: 6443}}\n",
		"grpc":      "    livenessProbe: {grpc: {port: 6443}}\n",
		"no port":   "    livenessProbe: {httpGet: {path: /livez, port: unnamed}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				w.probed(probe, "--tls-cert-file=/etc/kubernetes/pki/apiserver.crt")
				starts := w.Starts("kube-apiserver")
				if result := w.rotate(); len(result.Rotated) != 11 || len(result.Restarted) != 3 || w.Starts("kube-apiserver") != starts+1 {
					t.Errorf("%+v, %d starts", result, w.Starts("kube-apiserver")-starts)
				}
				if asked := w.Asked("kube-apiserver"); asked.Handshake != "127.0.0.1:6443" || asked.Serves != certificates.Fingerprint(w.Leaf("pki/apiserver")) {
					t.Errorf("it was asked by %+v", asked)
				}
			})
		})
	}
}

// TestOnlyTheCertificateOfTheFlagIsServed: an API server that is told another file never serves kubeadm's.
func TestOnlyTheCertificateOfTheFlagIsServed(t *testing.T) {
	for flag, serves := range map[string]bool{
		"--tls-cert-file=/etc/kubernetes/pki/apiserver.crt": true,
		"--tls-cert-file=/etc/kubernetes/pki/own.crt":       false,
		"--v=2": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5*day)
			w.probed("", flag)
			w.rotate()
			if asked := w.Asked("kube-apiserver"); (asked.Serves != "") != serves {
				t.Errorf("%s: it was asked by %+v", flag, asked)
			}
		})
	}
}

// behind is a kubelet whose first API server serves an older certificate than that in its file.
type behind struct{ *primarytest.Kubelet }

func (b behind) Answers(ctx context.Context, of primary.Static) error {
	if of.Serves != "" && b.Starts(of.Name) == 1 {
		return errors.New("it serves another certificate")
	}
	return b.Kubelet.Answers(ctx, of)
}

// TestBeforeItsRestartAnAPIServerMayServeAnyCertificate: another program may just have renewed the file.
func TestBeforeItsRestartAnAPIServerMayServeAnyCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.probed("", "--tls-cert-file=/etc/kubernetes/pki/apiserver.crt")
		w.Rotation.Kubelet = behind{w.Kubelet}
		if result := w.rotate(); len(result.Rotated) != 11 || len(result.Restarted) != 3 {
			t.Errorf("%+v", result)
		}
	})
}

// TestAComponentWithAnInterruptedRenewalIsRestartedThoughItIsAway: some of its files are new ones already.
func TestAComponentWithAnInterruptedRenewalIsRestartedThoughItIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		effects := w.killAt(0)
		w = newWorld(t, 5*day)
		at := slices.IndexFunc(effects, func(effect string) bool {
			return strings.HasPrefix(effect, "swap ") && strings.HasSuffix(effect, "front-proxy-client.key")
		})
		w.killAt(at + 1)
		old := w.Starts("kube-apiserver")
		w.Refuses = func(component string, _ []string) string {
			if component == "kube-apiserver" && w.Starts(component) == old {
				return "connection refused"
			}
			return ""
		}
		time.Sleep(time.Minute)
		if result := w.rotate(); len(result.Rotated) != 11 || !slices.Contains(result.Restarted, "kube-apiserver") {
			t.Errorf("it was killed before %q: %+v", effects[at], result)
		}
		w.clean()
	})
}

// sidecar puts another container before the component's own, which gets that name.
func (w *world) sidecar(component, name string) {
	path := "manifests/" + component + ".yaml"
	manifest := bytes.Replace(w.Read(path), []byte("  containers:\n"), []byte("  containers:\n  - name: sidecar\n    command: [proxy, --secure-port=1]\n"+
		"    livenessProbe: {httpGet: {path: /, port: 15021}}\n    startupProbe: {failureThreshold: 60}\n"), 1)
	w.Write(path, 0o600, bytes.Replace(manifest, []byte("    name: "+component), []byte("    name: "+name), 1))
}

func TestASidecarIsNotTheComponent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.sidecar("kube-scheduler", "kube-scheduler")
		w.rotate()
		want := primary.Static{Namespace: "kube-system", Name: "kube-scheduler", Container: "kube-scheduler", Probe: "https://127.0.0.1:10259/healthz"}
		if asked := w.Asked("kube-scheduler"); asked != want {
			t.Errorf("it was asked by %+v", asked)
		}
	})
}

// TestWhatCannotBeAskedIsNotRestarted: its certificates stay, and the others are renewed.
func TestWhatCannotBeAskedIsNotRestarted(t *testing.T) {
	for name, change := range map[string]func(*world){
		"no port":           func(w *world) { w.probed("", "--secure-port=0") },
		"no port, by hand":  func(w *world) { w.ByHand = true; w.probed("", "--secure-port=0") },
		"no such container": func(w *world) { w.sidecar("kube-apiserver", "api") },
		"it is away before": func(w *world) { w.Refuses = func(string, []string) string { return "connection refused" } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				change(w)
				before, starts := w.leaves(), w.Starts("kube-apiserver")
				result, err := w.run()
				if !errors.Is(err, primary.ErrFailed) || len(result.Down) > 0 || !slices.Contains(result.Rotated, "admin.conf") || w.Starts("kube-apiserver") != starts {
					t.Errorf("%v: %+v", err, result)
				}
				if !w.Leaf("pki/front-proxy-client").Equal(before["pki/front-proxy-client"]) {
					t.Error("its certificates are new ones")
				}
				w.tidy()
			})
		})
	}
}

func TestWithoutAnAPIServerNothingElseIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.Refuses = func(component string, _ []string) string { return map[string]string{"kube-apiserver": "no"}[component] }
		starts := w.Starts("kube-scheduler")
		if result, err := w.run(); !errors.Is(err, primary.ErrFailed) || len(result.Restarted) > 0 || w.Starts("kube-scheduler") != starts {
			t.Errorf("%v: %+v", err, result)
		}
		w.tidy()
	})
}

func TestAnAnswerThatComesLateKeepsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		asked := 0
		w.Refuses = func(component string, _ []string) string {
			if component != "kube-apiserver" {
				return ""
			}
			if asked++; asked < 3 {
				return "context deadline exceeded"
			}
			return ""
		}
		if result := w.rotate(); len(result.Rotated) != 11 || len(result.Restarted) != 3 {
			t.Errorf("%+v", result)
		}
	})
}

func TestAnAdministratorRenewsThoughAComponentIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.ByHand = true
		starts := w.Starts("kube-scheduler")
		w.Refuses = func(component string, _ []string) string {
			if component == "kube-scheduler" && w.Starts(component) == starts {
				return "connection refused"
			}
			return ""
		}
		if result := w.rotate(); len(result.Rotated) != 11 || len(result.Restarted) != 3 {
			t.Errorf("%+v", result)
		}
	})
}

// TestASlowStartIsWaitedForAsLongAsItsProbeDoes: the startup probe allows more than the patience.
func TestASlowStartIsWaitedForAsLongAsItsProbeDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		manifest := "manifests/kube-apiserver.yaml"
		w.Write(manifest, 0o600, append(w.Read(manifest), "    startupProbe: {failureThreshold: 60, periodSeconds: 10, httpGet: {path: /livez, port: 6443}}\n"...))
		starts := w.Starts("kube-apiserver")
		w.Refuses = func(component string, _ []string) string {
			if _, started := w.Newest(component); component == "kube-apiserver" && w.Starts(component) > starts && time.Since(started) < 10*time.Minute {
				return "connection refused"
			}
			return ""
		}
		if result := w.rotate(); len(result.Restarted) != 3 || w.Starts("kube-apiserver") != starts+1 {
			t.Errorf("%+v, %d starts", result, w.Starts("kube-apiserver")-starts)
		}
	})
}

// TestAnEndlessStartupProbeIsNotWaitedForWithoutEnd: otherwise EKCO's pod would end first, and restore nothing.
func TestAnEndlessStartupProbeIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		manifest := "manifests/kube-scheduler.yaml"
		w.Write(manifest, 0o600, append(w.Read(manifest), "    startupProbe: {failureThreshold: 100000}\n"...))
		had := w.Loaded("kube-scheduler")
		w.Refuses = func(component string, loaded []string) string {
			if component == "kube-scheduler" && !slices.Equal(loaded, had) {
				return "no"
			}
			return ""
		}
		began := time.Now()
		if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || time.Since(began) > primary.MaxPatience+time.Minute || !slices.Equal(w.Loaded("kube-scheduler"), had) {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestAnAdministratorsPatienceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		manifest := "manifests/kube-scheduler.yaml"
		w.Write(manifest, 0o600, append(w.Read(manifest), "    startupProbe: {failureThreshold: 60}\n"...))
		w.ByHand, w.Patience = true, 10*time.Second
		w.Refuses = func(component string, _ []string) string { return map[string]string{"kube-scheduler": "no"}[component] }
		began := time.Now()
		if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || time.Since(began) > time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// TestARotationTakesThreeTimesItsPatienceAtMost: the time limit of EKCO's pod relies on it.
func TestARotationTakesThreeTimesItsPatienceAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		first := map[string]int{}
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
			first[component] = w.Starts(component)
		}
		w.Refuses = func(component string, _ []string) string {
			starts := w.Starts(component)
			_, started := w.Newest(component)
			late := component == "kube-apiserver" && starts == first[component]+2 && time.Since(started) > w.Patience/3-10*time.Second
			if starts == first[component] || late {
				return ""
			}
			return "no"
		}
		began := time.Now()
		if result, err := w.run(); err == nil || len(result.Down) != 3 {
			t.Errorf("%v: %+v", err, result)
		}
		if took := time.Since(began); took < 2*w.Patience || took > 3*w.Patience+10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAHandshakeShowsWhatIsServed(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	of := primary.Static{Handshake: strings.TrimPrefix(server.URL, "https://"), Serves: certificates.Fingerprint(server.Certificate())}
	if err := (primary.OnHost{}).Answers(t.Context(), of); err != nil {
		t.Error(err)
	}
	of.Serves = "another"
	if err := (primary.OnHost{}).Answers(t.Context(), of); err == nil {
		t.Error("it serves another certificate")
	}
	asking := httptest.NewUnstartedServer(http.NotFoundHandler())
	asking.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	asking.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	asking.StartTLS()
	defer asking.Close()
	if err := (primary.OnHost{}).Answers(t.Context(), primary.Static{Handshake: strings.TrimPrefix(asking.URL, "https://")}); err != nil {
		t.Error(err)
	}
	of.Serves = ""
	server.Close()
	if err := (primary.OnHost{}).Answers(t.Context(), of); err == nil {
		t.Error("nobody serves")
	}
}

func TestAServerThatAsksWhoItIsAnswers(t *testing.T) {
	for status, want := range map[int]bool{200: true, 401: true, 403: true, 429: true, 404: false, 500: false, 503: false} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		err := primary.OnHost{}.Answers(t.Context(), primary.Static{Name: "kube-apiserver", Probe: server.URL + "/readyz"})
		server.Close()
		if (err == nil) != want {
			t.Errorf("%d: %v", status, err)
		}
	}
}
