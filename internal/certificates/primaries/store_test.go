package primaries_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primaries"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

var configMap = kube.Ref{Version: "v1", Resource: "configmaps", Namespace: "kurl", Name: "rotate-certs"}

// world is a cluster with two primaries and a worker.
type world struct {
	*kubesim.Objects
	*primaries.Store
	t *testing.T
	// served is what is served everywhere, or at that port alone; nil for nothing.
	served *x509.Certificate
	at     string
	asked  []string
	ahead  time.Duration
}

type list []kube.Node

func (l list) ListNodes(context.Context) ([]kube.Node, error) { return l, nil }

// isDue reports whether EKCO renews the certificates.
func isDue(facts journal.CertificateFacts) bool {
	_, due := fsmcertificates.Policy{TTL: 30 * day}.Due(facts, journal.CertificateInput{}, time.Now())
	return due
}

func newWorld(t *testing.T) *world {
	t.Helper()
	node := func(name string, role journal.NodeRole, taint string) kube.Node {
		facts := journal.NodeFacts{Role: role, InternalIP: "ip-" + name}
		if taint != "" {
			facts.Taints = []journal.Taint{{Key: taint, Effect: "NoSchedule"}}
		}
		return kube.Node{Name: name, UID: "uid-" + name, Facts: facts}
	}
	w := &world{Objects: kubesim.NewObjects(), t: t}
	w.Store = primaries.New(primaries.Options{
		Nodes:   list{node("p1", journal.RolePrimary, journal.TaintUnschedulable), node("p2", journal.RolePrimary, journal.TaintUnreachable), node("w1", journal.RoleWorker, "")},
		Objects: w.Objects, Namespace: "kurl",
		ServerTime: func() (time.Time, bool) { return time.Now().Add(w.ahead), true },
		Leaf: func(_ context.Context, address string) (*x509.Certificate, error) {
			if w.served == nil || w.at != "" && !strings.HasSuffix(address, w.at) {
				return nil, errors.New("connection refused")
			}
			return w.served, nil
		},
		Answers: func(_ context.Context, url string) error {
			w.asked = append(w.asked, url)
			return nil
		},
	})
	w.noted("2026-11-24T18:00:00Z")
	return w
}

// noted has the ConfigMap have this time; "" takes it away.
func (w *world) noted(at string) {
	w.t.Helper()
	if at == "" {
		w.Remove(configMap)
		return
	}
	w.Put(configMap, `{"kind":"ConfigMap","data":{"other":"kept","rotate-certs-last-attempted":"`+at+`"}}`)
}

// found is a certificate that is valid for so long, and the facts of it.
func (w *world) found(left time.Duration) (*x509.Certificate, journal.CertificatesOnPrimary) {
	w.t.Helper()
	ca := certificatestest.CA(w.t, "kubernetes", time.Now().Add(5*certificates.Year))
	content, _ := certificatestest.Pair(w.t, ca, "kube-apiserver", time.Now().Add(left), "p1")
	leaf, err := certificates.File{Content: content}.OneCertificate()
	if err != nil {
		w.t.Fatal(err)
	}
	return leaf, journal.CertificatesOnPrimary{Certificates: []journal.Certificate{certificates.Facts("/etc/kubernetes/pki/apiserver.crt", leaf)}, Clock: time.Now()}
}

func (w *world) facts(known map[string]journal.CertificateFacts) map[string]journal.CertificateFacts {
	w.t.Helper()
	facts, err := w.Facts(w.t.Context(), known)
	if err != nil {
		w.t.Fatal(err)
	}
	return facts
}

func TestThePrimariesAreToldWithWhatWasFoundOnThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		bare := map[string]journal.CertificateFacts{
			"p1": {Version: journal.CertificateFactsVersion, On: &journal.Primary{UID: "uid-p1", Address: "ip-p1", Ready: true}},
			"p2": {Version: journal.CertificateFactsVersion, On: &journal.Primary{UID: "uid-p2", Address: "ip-p2"}},
		}
		if diff := cmp.Diff(bare, w.facts(nil)); diff != "" {
			t.Error(diff)
		}
		_, found := w.found(31 * day)
		found.Problems = []string{"a", "b"}
		looks := 0
		seen := w.Seeing(func() { looks++ })
		seen("uid-p1", found, time.Now())
		seen("uid-p1", found, time.Now())
		facts := w.facts(nil)
		if p1 := facts["p1"]; looks != 1 || isDue(p1) || p1.Within != "" || p1.Unreadable != "a; b" || len(p1.Certificates) != 1 || len(facts["p2"].Certificates) != 0 {
			t.Errorf("after %d looks: %+v", looks, facts)
		}
		time.Sleep(2 * day)
		if p1 := w.facts(nil)["p1"]; !isDue(p1) || p1.Within != journal.Within30Days {
			t.Errorf("it is %+v", p1)
		}
	})
}

func TestWhatIsServedIsAllThatIsKnownUntilSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.served, _ = w.found(5 * day)
		w.at = ":6443"
		facts := w.facts(nil)
		if p1 := facts["p1"]; !isDue(p1) || p1.Within != journal.Within7Days || len(p1.Certificates) != 1 || p1.Certificates[0].At != "API server at ip-p1:6443" || len(facts["p2"].Certificates) != 0 {
			t.Errorf("they are %+v", facts)
		}
		w.served, _ = w.found(100 * day) // somebody has renewed it, while EKCO was away
		if p1 := w.facts(facts)["p1"]; isDue(p1) {
			t.Errorf("it is %+v", p1)
		}
		w.served = nil
		if p1 := w.facts(facts)["p1"]; !isDue(p1) {
			t.Errorf("it is %+v", p1)
		}
		_, found := w.found(300 * day)
		w.Seen("uid-p1", found, time.Now())
		if p1 := w.facts(nil)["p1"]; isDue(p1) || len(p1.Certificates) != 1 || p1.Certificates[0].At != "/etc/kubernetes/pki/apiserver.crt" {
			t.Errorf("it is %+v", p1)
		}
	})
}

func TestWhatTheJournalKnowsHoldsUntilSomebodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, found := w.found(5 * day)
		known := map[string]journal.CertificateFacts{
			"p1": {Certificates: found.Certificates, Unreadable: "x", On: &journal.Primary{UID: "uid-p1"}},
			"p2": {Certificates: found.Certificates, On: &journal.Primary{UID: "another"}},
		}
		facts := w.facts(known)
		if p1 := facts["p1"]; !isDue(p1) || p1.Unreadable != "x" || len(facts["p2"].Certificates) != 0 {
			t.Errorf("they are %+v", facts)
		}
	})
}

func TestSomebodyIsToLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		leaf, found := w.found(100 * day)
		other, _ := w.found(200 * day)
		for _, path := range []string{"/etc/kubernetes/pki/etcd/peer.crt", "/etc/kubernetes/admin.conf"} {
			more, _ := w.found(100 * day)
			found.Certificates = append(found.Certificates, certificates.Facts(path, more))
		}
		w.Seen("uid-p1", found, time.Now())
		for want, set := range map[string]func(){
			"its etcd serves another certificate than EKCO read in the files": func() { w.served, w.at = other, ":2380" },
			"": func() { w.served = leaf },
			"ConfigMap kurl/rotate-certs does not exist":                             func() { w.noted("") },
			"ConfigMap kurl/rotate-certs has no time in rotate-certs-last-attempted": func() { w.noted("yesterday") },
			"its API server serves another certificate than EKCO read in the files":  func() { w.served = other },
		} {
			w.noted("2026-11-24T18:00:00Z")
			w.served, w.at = nil, ""
			set()
			if got := w.facts(nil)["p1"].On.Again; got != want {
				t.Errorf("because %q, want %q", got, want)
			}
		}
		w.noted("2026-11-24T18:00:00Z")
		w.served, w.at = other, ":2379" // which is none of kubeadm's here
		if got := w.facts(nil)["p1"].On.Again; got != "" {
			t.Errorf("because %q", got)
		}
	})
}

func TestOnAWrongClockNothingIsDue(t *testing.T) {
	for ahead, want := range map[time.Duration]string{
		-day: "the clock of node p1 is 24h0m0s ahead of that of the API server", day: "the clock of node p1 is 24h0m0s behind",
		5*time.Minute + time.Second: "the clock of node p1 is 5m0s behind",
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.ahead = ahead
			_, found := w.found(5 * day)
			w.Seen("uid-p1", found, time.Now())
			known := w.facts(nil)
			if p1 := known["p1"]; isDue(p1) || !strings.Contains(p1.Unreadable, want) {
				t.Errorf("it is %+v", p1)
			}
			w = newWorld(t) // EKCO is started again
			again := w.facts(known)
			if diff := cmp.Diff(known, again); diff != "" {
				t.Error(diff)
			}
			_, found = w.found(5 * day)
			w.Seen("uid-p1", found, time.Now())
			if p1 := w.facts(again)["p1"]; !isDue(p1) || p1.Unreadable != "" {
				t.Errorf("after the clock was corrected it is %+v", p1)
			}
		})
	}
}

// TestAProgramThatEndedWhileEKCOWasAwaySaysNothingOfTheClock: its time is an old one by then.
func TestAProgramThatEndedWhileEKCOWasAwaySaysNothingOfTheClock(t *testing.T) {
	for behind, due := range map[time.Duration]bool{0: true, 4 * time.Minute: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			_, found := w.found(5 * day)
			began := found.Clock
			found.Clock = found.Clock.Add(-behind)
			time.Sleep(20 * time.Minute)
			w.Seen("uid-p1", found, began)
			if p1 := w.facts(nil)["p1"]; isDue(p1) != due || (p1.Unreadable == "") != due {
				t.Errorf("%s behind: %+v", behind, p1)
			}
		})
	}
}

func TestWhenSomebodyLookedIsWrittenDownForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, before := range []string{"", "yesterday", "1999-11-24T18:00:00Z"} {
			w.noted(before)
			began := time.Now()
			if noted, err := w.Attempted(t.Context(), began); noted || err != nil {
				t.Errorf("%v, %v", noted, err)
			}
			if err := w.Note(t.Context(), began); err != nil {
				t.Fatal(err)
			}
			if noted, err := w.Attempted(t.Context(), began); !noted || err != nil {
				t.Errorf("%v, %v", noted, err)
			}
			content, err := w.ReadObject(t.Context(), configMap)
			var read struct{ Data map[string]string }
			if err == nil {
				err = json.Unmarshal(content, &read)
			}
			if err != nil || read.Data["rotate-certs-last-attempted"] != began.UTC().Format(time.RFC3339) || (read.Data["other"] == "kept") != (before != "") {
				t.Errorf("%v: it has %v", err, read.Data)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestServersAndComponentsAreAskedWhereTheyAre(t *testing.T) {
	w := newWorld(t)
	all, err := w.Primaries(t.Context())
	if diff := cmp.Diff(map[string]primaries.Server{"p1": {Address: "ip-p1"}, "p2": {Address: "ip-p2", Lost: true}}, all); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if err := w.Answers(t.Context(), "10.0.0.1"); err != nil || w.asked[0] != "https://10.0.0.1:6443/readyz" {
		t.Errorf("%v: asked is %q", err, w.asked)
	}
	if err := w.Answers(t.Context(), ""); err == nil {
		t.Error("it answers nowhere")
	}
	if _, err := w.Serves(t.Context(), "10.0.0.1", 6443); err == nil {
		t.Error("it serves something")
	}
	w.served, _ = w.found(day)
	if served, err := w.Serves(t.Context(), "10.0.0.1", 6443); err != nil || served.Fingerprint != certificates.Fingerprint(w.served) {
		t.Errorf("%+v, %v", served, err)
	}
	if _, err := w.Component(t.Context(), "kube-scheduler", "p1"); !errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		t.Error(err)
	}
	w.Put(kube.Ref{Version: "v1", Resource: "pods", Namespace: "kube-system", Name: "kube-scheduler-p1"}, `{"metadata":{"annotations":{"kubernetes.io/config.hash":"abc"}},
		"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"state":{"running":{"startedAt":"2026-11-24T18:00:00Z"}}}]}}`)
	got, err := w.Component(t.Context(), "kube-scheduler", "p1")
	if want := (primaries.Component{Hash: "abc", Ready: true, Started: time.Date(2026, 11, 24, 18, 0, 0, 0, time.UTC)}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}
