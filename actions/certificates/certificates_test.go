package certificates

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/secrets"
	"github.com/replicatedhq/ekco/journal"
)

func scene(of journal.Subject, points int, prepare func(w *world)) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(bare *actionstest.World) actionstest.Stage {
		w := installed(bare, of)
		if prepare != nil {
			prepare(w)
		}
		w.ask()
		return actionstest.Stage{
			Kinds:   func(f *actionstest.Fuse) []actions.Definition { return f.Mortal(w.definition()) },
			Outcome: w.outcome,
		}
	}}
}

func scenes() actionstest.Scenes {
	return actionstest.Scenes{
		"registry":   scene(journal.CertificateRegistry, 14, nil),
		"kURL proxy": scene(journal.CertificateKurlProxy, 10, nil),
		"Contour":    scene(journal.CertificateContour, 14, nil),
		"KOTS":       scene(journal.CertificateKubeletClient, 10, nil),
		"against another who was faster": scene(journal.CertificateKurlProxy, 10, func(w *world) {
			first := true
			w.cluster.BeforeEffect = func(string) {
				if first {
					first = false
					w.cluster.Edit(certificatestest.KurlProxySecret, func(object map[string]any) { object["touched"] = true })
				}
			}
		}),
	}
}

func TestTheCrashMatrix(t *testing.T) { scenes().Run(t) }

func TestWhatIsRenewedIsServedAndNothingOfItsKeyIsOnRecord(t *testing.T) {
	for of, want := range map[journal.Subject]string{
		journal.CertificateRegistry:      `1 certificates, foreign is false, lacks "", unserved "", restarts 2`,
		journal.CertificateKurlProxy:     `2 certificates, foreign is false, lacks "", unserved "", restarts 0`,
		journal.CertificateContour:       `4 certificates, foreign is false, lacks "", unserved "", restarts 1`,
		journal.CertificateKubeletClient: `1 certificates, foreign is false, lacks "", unserved "", restarts 0`,
	} {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			w := installed(bare, of)
			w.ask()
			w.RunToEnd(w.Config([]actions.Definition{w.definition()}))
			if got := w.outcome(); got != want || w.LastLine() != "ended done" || w.looks != 1 {
				t.Errorf("%s: %s, %s, looked %d times", of.Name, got, w.LastLine(), w.looks)
			}
			w.secretless()
		})
	}
}

// TestEnvoyIsRestartedOnceContourServesTheNewOne: an Envoy with the new CA does not believe the old
// certificate, and serves nothing until it does.
func TestEnvoyIsRestartedOnceContourServesTheNewOne(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateContour)
		w.cluster.ReadyAfter = time.Hour
		w.ask()
		r := w.start()
		w.Pass(50 * time.Minute)
		held := w.Record().Holds[journal.StepAwaitLoaded]
		if held.Preflight != CertificateServed || !strings.Contains(held.Reason, "pod projectcontour/contour-1: it serves another certificate") || w.restarts() != 0 {
			t.Errorf("held by %+v, %d restarts", held, w.restarts())
		}
		w.cluster.ReadyAfter = time.Minute
		r.End()
		if got := w.outcome(); got != `4 certificates, foreign is false, lacks "", unserved "", restarts 1` || w.LastLine() != "ended done" {
			t.Errorf("%s, %s", got, w.LastLine())
		}
	})
}

func TestServersThatDoNotComeBackHoldTheActionWithTheirReasons(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateRegistry)
		w.cluster.ReadyAfter = 0
		w.ask()
		r := w.start()
		w.Pass(time.Minute)
		w.cluster.Put(certificatestest.PodRef("kurl", "registry-9"),
			`{"metadata":{"labels":{"app":"registry"}},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no room"}]}}`)
		w.Pass(2 * servedTimeout)
		held := w.Record().Holds[journal.StepAwaitServed]
		if held.Preflight != CertificateServed || held.Reason != "pod kurl/registry-9: Pending: Unschedulable: no room" {
			t.Errorf("held by %+v", held)
		}
		events := len(w.Events())
		w.Pass(10 * time.Hour)
		if n := len(w.Events()) - events; n > 0 {
			t.Errorf("%d events while nothing changes", n)
		}
		w.cluster.Remove(certificatestest.PodRef("kurl", "registry-9"))
		w.cluster.Pod("kurl", "registry", "registry-9", certificatestest.RegistrySecret, "registry.crt")
		r.End()
		if w.LastLine() != "ended done" {
			t.Errorf("it %s", w.LastLine())
		}
	})
}

func TestWhatCannotBeRenewedNowIsHeldAndChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		of      journal.Subject
		broken  func(w *world)
		mend    func(w *world)
		key     string
		because string
	}{
		"external CA": {
			of: journal.CertificateRegistry, key: "authority", because: "the CA is external",
			broken: func(w *world) { w.cluster.SignNothing(certificates.ErrExternalCA) }, mend: func(w *world) { w.cluster.SignNothing(nil) },
		},
		"no kubelet accepts it": {
			of: journal.CertificateKubeletClient, key: "authority", because: "copy apiserver-kubelet-client.crt: it answers 401",
			broken: func(w *world) { w.cluster.AcceptNothing(errors.New("it answers 401")) }, mend: func(w *world) { w.cluster.AcceptNothing(nil) },
		},
		"clock": {
			of: journal.CertificateContour, key: "unread", because: "ahead of EKCO's",
			broken: func(w *world) { w.cluster.Ahead(24 * time.Hour) }, mend: func(w *world) { w.cluster.Ahead(0) },
		},
		"unreadable": {
			of: journal.CertificateKurlProxy, key: "unreadable", because: "Secret default/kotsadm-tls (tls.key): it has no PEM block",
			broken: func(w *world) {
				w.cluster.Edit(certificatestest.KurlProxySecret, func(object map[string]any) {
					object["data"].(map[string]any)["tls.key"] = base64.StdEncoding.EncodeToString([]byte("x"))
				})
			},
			mend: func(w *world) { w.cluster.InstallKurlProxy(time.Now().Add(time.Hour), "") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				w := installed(bare, test.of)
				w.ask()
				plan, err := w.definition().Plan(t.Context(), w.Record())
				if err != nil || len(plan.Steps) == 0 {
					t.Fatal(err)
				}
				test.broken(w)
				preflight := w.definition().Preflights[CertificateRenewable]
				if verdict := preflight.Check(t.Context(), w.Record()); verdict.Kind != actions.VerdictHold || verdict.Key != test.key || !strings.Contains(verdict.Reason, test.because) || verdict.Grace > 0 != (test.key == "unreadable") {
					t.Errorf("the verdict is %+v", verdict)
				}
				r := w.start()
				w.Pass(time.Hour)
				if n := len(w.cluster.Effects()); n != 0 {
					t.Errorf("%d effects", n)
				}
				test.mend(w)
				r.End()
				if w.LastLine() != "ended done" {
					t.Errorf("it %s", w.LastLine())
				}
			})
		})
	}
}

func TestWhatIsNotEKCOsAnyMoreEndsTheAction(t *testing.T) {
	for want, change := range map[string]func(w *world){
		"customer's own":  func(w *world) { w.cluster.InstallKurlProxy(time.Now().Add(time.Hour), "admin.example.com") },
		"no longer exist": func(w *world) { w.cluster.Remove(certificatestest.KurlProxySecret) },
	} {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			w := installed(bare, journal.CertificateKurlProxy)
			w.ask()
			change(w)
			w.RunToEnd(w.Config([]actions.Definition{w.definition()}))
			events := w.Events()
			last := string(events[len(events)-1].Payload)
			if !strings.Contains(last, `"abandoned"`) || !strings.Contains(last, want) || len(w.cluster.Effects()) != 0 {
				t.Errorf("it ends with %s; %v", last, w.cluster.Effects())
			}
		})
	}
}

func TestAnAddOnThatIsRemovedMeanwhileIsNotWaitedFor(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateContour)
		w.cluster.ReadyAfter = 0
		w.ask()
		r := w.start()
		w.Pass(time.Minute)
		w.cluster.Remove(certificatestest.ContourSecret)
		r.End()
		if w.LastLine() != "ended done" {
			t.Errorf("it %s", w.LastLine())
		}
	})
}

func TestWhatSomebodyElseHasRenewedIsNotRenewedAgain(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateRegistry)
		w.ask()
		w.cluster.Put(certificatestest.RegistrySecret, certificatestest.Registry(t, w.cluster.CA, time.Now().Add(certificates.Year)))
		w.RunToEnd(w.Config([]actions.Definition{w.definition()}))
		if n := w.cluster.Calls("update secrets"); n != 0 || w.restarts() != 2 || w.LastLine() != "ended done" {
			t.Errorf("%d updates, %d restarts, %s", n, w.restarts(), w.LastLine())
		}
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateContour)
		w.Request(w.of, journal.ActionRequested{Kind: journal.ActionRenewCertificate, DryRun: true})
		w.RunToEnd(w.Config([]actions.Definition{w.definition()}))
		if w.LastLine() != "ended dry-run" || len(w.cluster.Effects()) != 0 {
			t.Errorf("%s; %v", w.LastLine(), w.cluster.Effects())
		}
	})
}

func TestThePlanSaysWhoIsRestarted(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		for of, want := range map[journal.Subject]string{
			journal.CertificateRegistry:  "renew restart await-served",
			journal.CertificateKurlProxy: "renew await-served",
			journal.CertificateContour:   "renew await-loaded restart await-served",
		} {
			w := installed(bare, of)
			plan, err := w.definition().Plan(t.Context(), journal.ActionRecord{Subject: of})
			var steps []string
			for _, step := range plan.Steps {
				steps = append(steps, step.ID)
				if step.Domains == nil || len(step.Domains) > 0 {
					t.Errorf("%s takes %v", step.ID, step.Domains)
				}
			}
			if err != nil || strings.Join(steps, " ") != want {
				t.Errorf("%s: %v: %v", of.Name, err, steps)
			}
		}
	})
}

func TestWhatIsDueAgainIsNotWaitedForAnyMore(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateRegistry)
		w.cluster.ReadyAfter = 0
		w.ask()
		r := w.start()
		w.Pass(time.Minute)
		w.Pass(2 * servedTimeout)
		if held := w.Record().Holds[journal.StepAwaitServed]; held.Preflight != CertificateServed {
			t.Fatalf("held by %+v", held)
		}
		w.cluster.InstallRegistry(time.Now().Add(29*24*time.Hour), 0)
		r.End()
		if w.LastLine() != "ended done" {
			t.Errorf("it %s", w.LastLine())
		}
	})
}

func TestARestartBeforeTheRenewalIsNoneAfterIt(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateContour)
		w.cluster.BeforeEffect = func(string) {
			w.cluster.BeforeEffect = nil
			<-time.After(time.Minute)
			// An administrator restarts Envoy after the plan, and before there are new certificates.
			at := time.Now().Add(-30 * time.Second).UTC().Format(time.RFC3339)
			w.cluster.Edit(certificatestest.Envoys, func(object map[string]any) {
				template := object["spec"].(map[string]any)["template"].(map[string]any)
				template["metadata"] = map[string]any{"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": at}}
			})
			w.cluster.Edit(certificatestest.ContourSecret, func(object map[string]any) { object["touched"] = true }) // it is tried again
		}
		w.ask()
		w.RunToEnd(w.Config([]actions.Definition{w.definition()}))
		if w.restarts() != 1 || w.LastLine() != "ended done" {
			t.Errorf("%d restarts, %s", w.restarts(), w.LastLine())
		}
	})
}

// TestAnAdministratorRenewsWhateverExpiresWithinTTL: also a new certificate and one that is valid longer than
// the next, and only once.
func TestAnAdministratorRenewsWhateverExpiresWithinTTL(t *testing.T) {
	for _, of := range []journal.Subject{journal.CertificateKurlProxy, journal.CertificateContour, journal.CertificateRegistry} {
		for left, ttl := range map[time.Duration]time.Duration{20 * day: certificates.Year, 360 * day: certificates.Year, 3 * certificates.Year: 4 * certificates.Year} {
			actionstest.InBubble(t, func(bare *actionstest.World) {
				w := newWorld(bare, of)
				ends := time.Now().Add(left).Truncate(time.Second)
				w.cluster.InstallKurlProxy(ends, "")
				w.cluster.InstallContour(ends)
				w.cluster.InstallRegistry(ends, 2)
				w.Request(w.of, journal.ActionRequested{
					Kind: journal.ActionRenewCertificate, Manual: true, Input: journal.CertificateInput{Ends: ends, TTL: journal.Duration(ttl)},
				})
				w.RunToEnd(w.Config([]actions.Definition{w.definition()}))
				updates, secrets := w.cluster.Calls("update secrets"), len(w.cluster.Store().Refs(w.of))
				facts, err := w.cluster.Store().Read(t.Context(), w.of)
				if err != nil || facts.Ends().Before(time.Now().Add(364*day)) || facts.Ends().Equal(ends) || updates != secrets || w.LastLine() != "ended done" {
					t.Errorf("%s, %s left: %v: it expires at %s; %d updates of %d Secrets; %s", of.Name, left, err, facts.Ends(), updates, secrets, w.LastLine())
				}
			})
		}
	}
}

// TestAPersonHasWhatIsNotDueRenewed: it is due by what was asked for, not by the settings.
func TestAPersonHasWhatIsNotDueRenewed(t *testing.T) {
	for ttl, want := range map[time.Duration]int{0: 0, 99 * day: 0, 101 * day: 1} {
		actionstest.InBubble(t, func(bare *actionstest.World) {
			w := newWorld(bare, journal.CertificateKurlProxy)
			w.cluster.InstallKurlProxy(time.Now().Add(100*day), "")
			w.Request(w.of, journal.ActionRequested{Kind: journal.ActionRenewCertificate, Manual: true, Input: journal.CertificateInput{TTL: journal.Duration(ttl)}})
			w.RunToEnd(w.Config([]actions.Definition{w.definition()}))
			if got := len(w.cluster.Effects()); got != want || w.LastLine() != "ended done" {
				t.Errorf("within %s: %d effects, %s", ttl, got, w.LastLine())
			}
		})
	}
}

const day = 24 * time.Hour

// broken is a store that cannot renew anything until that time.
type broken struct {
	Store
	until time.Time
}

func (s broken) Renew(ctx context.Context, of journal.Subject, due secrets.Due) (journal.CertificateFacts, error) {
	if time.Now().Before(s.until) {
		return journal.CertificateFacts{}, errors.New("it cannot be renewed")
	}
	return s.Store.Renew(ctx, of, due)
}

func TestAStalledRenewalOfASecretIsRetried(t *testing.T) {
	actionstest.InBubble(t, func(bare *actionstest.World) {
		w := installed(bare, journal.CertificateRegistry)
		until := time.Now().Add(24 * time.Hour)
		w.ask()
		r := w.Start(w.Config([]actions.Definition{New(broken{w.cluster.Store(), until}, due, func() {})}))
		w.Pass(23 * time.Hour)
		if w.Record().Stalled == nil {
			t.Errorf("it is not stalled: %q", w.Story())
		}
		w.Pass(8 * time.Hour)
		r.End()
		if w.LastLine() != "ended done" {
			t.Errorf("it %s", w.LastLine())
		}
	})
}
