package certificates_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/certificates"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// estate is what is known of control planes.
type estate struct {
	mu    sync.Mutex
	facts map[string]journal.CertificateFacts
	known []string
	clock error
	err   error
}

func (e *estate) Facts(_ context.Context, known map[string]journal.CertificateFacts) (map[string]journal.CertificateFacts, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known = nil
	for name := range known {
		e.known = append(e.known, name)
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.facts, nil
}

// knew are the names of what the last look was told to be known.
func (e *estate) knew() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known
}

// misjudges has the clock be wrong for that reason, or right again.
func (e *estate) misjudges(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.clock = why
}

func (e *estate) fails(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
}

func (e *estate) Clock() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.clock
}

func (e *estate) set(node string, facts *journal.CertificateFacts) {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := map[string]journal.CertificateFacts{}
	for name, of := range e.facts {
		all[name] = of
	}
	delete(all, node)
	if facts != nil {
		all[node] = *facts
	}
	e.facts = all
}

func onPrimary(uid string) *journal.CertificateFacts {
	return &journal.CertificateFacts{On: &journal.Primary{UID: uid, Ready: true}}
}

func primaryLine(node, facts string) string {
	return "Certificate control-plane/" + node + "  " + facts
}

func TestOfEachPrimaryIsToldWhatIsKnownOfItsCertificates(t *testing.T) {
	e, nudge := &estate{}, &observers.Nudge{}
	e.set("p1", onPrimary("u1"))
	known := map[string]journal.CertificateFacts{"registry": {}, "control-plane/p9": *onPrimary("u9"), "control-plane/p1": *onPrimary("u1")}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return nudge.Over(certificates.OfPrimaries(e, e.Clock, "", known))
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(primaryLine("p9", "gone: its node is no longer a primary: absent at start"))
		if known := e.knew(); len(known) != 2 {
			t.Errorf("known are %q", known)
		}
		e.set("p1", onPrimary("another"))
		nudge.Look()
		b.Settle()
		b.WroteThings(primaryLine("p1", "gone: its node is no longer a primary: replaced by uid another"), primaryLine("p1", `{"on":{"uid":"another","ready":true}}`))
		e.misjudges(errors.New("the clock"))
		e.set("p1", nil)
		b.Pass(time.Hour)
		b.WroteThings()
		e.misjudges(nil)
		b.Pass(time.Hour)
		b.WroteThings(primaryLine("p1", "gone: its node is no longer a primary: deleted"))
	})
}

func TestSwitchedOffControlPlanesAreNoBusinessOfEKCOs(t *testing.T) {
	known := map[string]journal.CertificateFacts{"control-plane/p1": *onPrimary("u1")}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{certificates.OfPrimaries(&estate{}, func() error { return errors.New("nobody asks") }, "rotate_certs is off", known)}
		}
	}, func(b *observerstest.Bench) { b.WroteThings(primaryLine("p1", "gone: rotate_certs is off")) })
}
