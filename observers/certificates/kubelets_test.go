package certificates_test

import (
	"errors"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/certificates"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestOfEachKubeletIsToldWhatItServes(t *testing.T) {
	served := func(by string) *journal.CertificateFacts { return &journal.CertificateFacts{Unrenewed: by} }
	line := func(node, facts string) string { return "Certificate kubelet/" + node + "  " + facts }
	e := &estate{}
	e.set("w1", served("its kubelet"))
	known := map[string]journal.CertificateFacts{"registry": {}, "control-plane/w1": *onPrimary("u1"), "kubelet/w1": *served("its kubelet"), "kubelet/w9": *served("its kubelet")}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return []observers.Source{certificates.OfKubelets(e, e.Clock, known)}
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings(line("w9", "gone: its node is gone: absent at start"))
		e.set("w2", served("another"))
		b.Pass(12 * time.Minute)
		b.WroteThings(line("w2", `{"unrenewed":"another"}`))
		if known := e.knew(); len(known) != 1 {
			t.Errorf("known are %q, want those that were seen before", known)
		}
		b.Pass(12 * time.Minute)
		if known := e.knew(); len(known) != 2 {
			t.Errorf("known are %q, want those that were seen before", known)
		}
		for _, why := range []error{kube.ErrUnavailable, errors.New("no answer")} {
			e.fails(why)
			b.Pass(time.Hour)
			b.WroteThings()
		}
		if b.Logged("certificates of kubelets") != 1 {
			t.Errorf("said was:\n%s", b.Said)
		}
		e.fails(nil)
		e.misjudges(errors.New("the clock"))
		e.set("w1", nil)
		b.Pass(time.Hour)
		b.WroteThings()
		e.misjudges(nil)
		b.Pass(time.Hour)
		b.WroteThings(line("w1", "gone: its node is gone: deleted"))
	})
}
