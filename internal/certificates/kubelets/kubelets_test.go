package kubelets_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/kubelets"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// world is a cluster with kubelets.
type world struct {
	t     *testing.T
	nodes []kube.Node
	mu    sync.Mutex
	// served are the certificates, by address, and asked the addresses that somebody asked.
	served map[string]*x509.Certificate
	asked  []string
	err    error
}

func (w *world) ListNodes(context.Context) ([]kube.Node, error) { return w.nodes, w.err }

func (w *world) leaf(_ context.Context, address string) (*x509.Certificate, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, address)
	if w.served[address] == nil {
		return nil, errors.New("connection refused")
	}
	return w.served[address], nil
}

func (w *world) node(name, address, taint string) {
	node := kube.Node{Name: name, Facts: journal.NodeFacts{InternalIP: address}}
	if taint != "" {
		node.Facts.Taints = []journal.Taint{{Key: taint, Effect: "NoExecute"}}
	}
	w.nodes = append(w.nodes, node)
}

// serves has a kubelet serve a certificate of an issuer that is valid from now on for so long.
func (w *world) serves(address, issuer string, left time.Duration) {
	w.t.Helper()
	ca := certificatestest.CA(w.t, issuer, time.Now().Add(5*certificates.Year))
	content, _ := certificatestest.Pair(w.t, ca, "system:node:w1", time.Now().Add(left), "w1")
	leaf, err := certificates.File{Content: content}.OneCertificate()
	if err != nil {
		w.t.Fatal(err)
	}
	leaf.NotBefore = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.served[address] = leaf
}

// sees is what is known of the kubelets' certificates, in a line for each.
func (w *world) sees(known map[string]journal.CertificateFacts) (map[string]journal.CertificateFacts, map[string]string) {
	w.t.Helper()
	facts, err := kubelets.Store{Nodes: w, Leaf: w.leaf}.Facts(w.t.Context(), known)
	if err != nil {
		w.t.Fatal(err)
	}
	lines := map[string]string{}
	for node, of := range facts {
		if of.On != nil || of.Foreign || of.Unrenewed == "" || len(of.Certificates) != 1 {
			w.t.Errorf("%s: %+v would be renewed", node, of)
			continue
		}
		lines[node] = fmt.Sprintf("%s, %s left%s", of.Certificates[0].At, time.Until(of.Ends()).Round(time.Hour), strings.TrimSuffix(", "+string(of.Within), ", "))
	}
	return facts, lines
}

func (w *world) wants(lines, want map[string]string) {
	w.t.Helper()
	if fmt.Sprint(lines) != fmt.Sprint(want) {
		w.t.Errorf("seen are\n%v\nwant\n%v", lines, want)
	}
}

func testWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&world{t: t, served: map[string]*x509.Certificate{}}) })
}

func TestWhatEachKubeletServesIsToldAndKeptWhileItDoesNotAnswer(t *testing.T) {
	testWorld(t, func(w *world) {
		w.node("p1", "10.0.0.1", journal.TaintUnschedulable)
		w.node("w1", "10.0.0.2", "")
		w.node("w2", "fd00::3", "")
		w.node("away", "10.0.0.4", journal.TaintUnreachable)
		w.node("bare", "", "")
		for _, address := range []string{"10.0.0.1:10250", "[fd00::3]:10250", "10.0.0.4:10250"} {
			w.serves(address, "kubernetes", 300*day)
		}
		facts, lines := w.sees(nil)
		w.wants(lines, map[string]string{"p1": "kubelet at 10.0.0.1:10250, 7200h0m0s left", "w2": "kubelet at [fd00::3]:10250, 7200h0m0s left"})
		if len(w.asked) != 3 {
			w.t.Errorf("asked are %q", w.asked)
		}
		facts["gone"] = facts["p1"]
		w.served = map[string]*x509.Certificate{}
		time.Sleep(271 * day)
		_, lines = w.sees(facts)
		w.wants(lines, map[string]string{"p1": "kubelet at 10.0.0.1:10250, 696h0m0s left, 30 days", "w2": "kubelet at [fd00::3]:10250, 696h0m0s left, 30 days"})
		w.err = kube.ErrUnavailable
		if facts, err := (kubelets.Store{Nodes: w, Leaf: w.leaf}).Facts(w.t.Context(), facts); facts != nil || !errors.Is(err, kube.ErrUnavailable) {
			w.t.Errorf("%v: %v", err, facts)
		}
	})
}

func TestWhoRenewsAKubeletsCertificateIsToldAndWhenToWarn(t *testing.T) {
	for _, test := range []struct {
		issuer       string
		valid, after time.Duration
		who          string
		within       journal.ExpiryWarning
	}{
		{"kubernetes", 365 * day, 330 * day, "with a signing request", ""},
		{"kubernetes", 365 * day, 336 * day, "with a signing request", journal.Within30Days},
		{"kubernetes", day, time.Hour, "with a signing request", ""},
		{"kubernetes", day, 23 * time.Hour, "with a signing request", journal.Within1Day},
		{"kubernetes", day, 25 * time.Hour, "with a signing request", journal.Expired},
		{"w1-ca@1700000000", 365 * day, 336 * day, "signed it itself", journal.Within30Days},
		{"w1-ca@1700000000", day, time.Hour, "signed it itself", journal.Within1Day},
	} {
		testWorld(t, func(w *world) {
			w.node("w1", "10.0.0.2", "")
			w.serves("10.0.0.2:10250", test.issuer, test.valid)
			time.Sleep(test.after)
			facts, _ := w.sees(nil)
			if got := facts["w1"]; !strings.Contains(got.Unrenewed, test.who) || got.Within != test.within {
				w.t.Errorf("%+v: %q, within %q", test, got.Unrenewed, got.Within)
			}
		})
	}
}
