package certificates

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim/tempdir"
	"github.com/replicatedhq/ekco/journal"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	goleak.VerifyTestMain(m)
}

// world is an action about certificates in a cluster.
type world struct {
	*actionstest.World
	cluster *certificatestest.Cluster
	of      journal.Subject
	looks   int
}

func newWorld(bare *actionstest.World, of journal.Subject) *world {
	w := &world{World: bare, cluster: certificatestest.NewCluster(bare.T), of: of}
	terms, err := fsm.TermsByKind(fsmcertificates.Capability())
	if err != nil {
		w.T.Fatal(err)
	}
	terms[journal.ActionRenewCertificate] = fsm.Terms{Rules: actionstest.Rules(), Domains: terms[journal.ActionRenewCertificate].Domains}
	w.Terms = terms
	return w
}

// installed installs what the action is about, due in an hour.
func installed(bare *actionstest.World, of journal.Subject) *world {
	w, soon := newWorld(bare, of), time.Now().Add(time.Hour)
	switch of {
	case journal.CertificateRegistry:
		w.cluster.InstallRegistry(soon, 2)
	case journal.CertificateKurlProxy:
		w.cluster.InstallKurlProxy(soon, "")
	case journal.CertificateContour:
		w.cluster.InstallContour(soon)
	case journal.CertificateKubeletClient:
		w.cluster.InstallKubeletClient(soon)
		w.cluster.RenewPrimary(time.Now().Add(certificates.Year))
	}
	return w
}

func (w *world) ask() {
	w.T.Helper()
	w.Request(w.of, journal.ActionRequested{Kind: journal.ActionRenewCertificate})
}

// due is the rule of the machine.
func due(facts journal.CertificateFacts, input journal.CertificateInput) (why string, due bool) {
	return fsmcertificates.Policy{TTL: 30 * day}.Due(facts, input, time.Now())
}

// ownDue is that of EKCO itself.
func ownDue(facts journal.CertificateFacts) (why string, is bool) {
	return due(facts, journal.CertificateInput{})
}

func (w *world) definition() actions.Definition {
	store := w.cluster.Store()
	return New(store, due, func() { w.looks++ })
}

func (w *world) start() *actionstest.Running {
	w.T.Helper()
	return w.Start(w.Config([]actions.Definition{w.definition()}))
}

// outcome is the state of the certificates and of their servers.
func (w *world) outcome() string {
	w.T.Helper()
	facts, lacks, err := w.cluster.Store().WhyNotRenewed(w.T.Context(), w.of, ownDue)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return "gone"
	}
	if err != nil {
		w.T.Fatal(err)
	}
	unserved, err := w.cluster.Store().WhyNotServed(w.T.Context(), w.of, 0)
	if err != nil {
		w.T.Fatal(err)
	}
	if lacks != "" {
		lacks = "not renewed"
	}
	return fmt.Sprintf("%d certificates, foreign is %v, lacks %q, unserved %q, restarts %d", len(facts.Certificates), facts.Foreign, lacks, unserved, w.restarts())
}

// restarts counts how often anybody was restarted.
func (w *world) restarts() (n int) {
	for _, effect := range w.cluster.Effects() {
		if strings.HasPrefix(effect.Name, "delete pods") || strings.HasPrefix(effect.Name, "patch daemonsets") {
			n++
		}
	}
	return n
}

// secretless fails if anything on record has a key in it.
func (w *world) secretless() {
	w.T.Helper()
	for _, event := range w.Events() {
		raw, err := json.Marshal(event)
		if err != nil {
			w.T.Fatal(err)
		}
		if strings.Contains(string(raw), "PRIVATE") || strings.Contains(string(raw), "LS0tLS1CRUdJ") {
			w.T.Errorf("there is a key on record: %s", raw)
		}
	}
	if strings.Contains(w.Logged(), "PRIVATE") || strings.Contains(w.Logged(), "LS0tLS1CRUdJ") {
		w.T.Errorf("there is a key in the log:\n%s", w.Logged())
	}
}
