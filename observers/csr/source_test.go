package csr_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observercsr "github.com/replicatedhq/ekco/observers/csr"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

// desk is a world with requests, in which the source runs.
type desk struct {
	*observerstest.Bench

	mu sync.Mutex
	// looks counts the looks around; addresses is what they find of every Node.
	looks     int
	addresses []string
	broken    error
}

// watching runs a test in which the source of requests runs alone.
func watching(t *testing.T, known []observercsr.Known, off string, prepare, test func(*desk)) {
	t.Helper()
	d := &desk{addresses: []string{"w1", "10.0.0.1"}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		d.Bench = b
		b.Sources = func() []observers.Source {
			return []observers.Source{observercsr.New(observercsr.Options{Requests: b.Requests(), Around: d.around, Known: known, Off: off})}
		}
		if prepare != nil {
			prepare(d)
		}
	}, func(*observerstest.Bench) { test(d) })
}

func (d *desk) around(_ context.Context, asked ...journal.CSR) ([]journal.CSRAround, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	if d.broken != nil {
		return nil, d.broken
	}
	found := make([]journal.CSRAround, len(asked))
	for i, request := range asked {
		found[i].Node = &journal.CSRNode{UID: "uid-" + journal.KubeletOf(request.Requester), Addresses: d.addresses}
	}
	return found, nil
}

func (d *desk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *desk) looked(want int) {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.looks != want {
		d.Errorf("looked around %d times, want %d", d.looks, want)
	}
	d.looks = 0
}

// told returns what was written since the last time, one line for each event.
func (d *desk) told() (lines []string) {
	for _, batch := range d.Paper.Batches {
		for _, draft := range batch {
			switch p := draft.Payload.(type) {
			case journal.ThingGone:
				lines = append(lines, draft.Subject.Name+" "+p.Reason)
			case journal.ThingObserved:
				var facts journal.CSRFacts
				if err := json.Unmarshal(p.Facts, &facts); err != nil {
					d.Fatal(err)
				}
				line := draft.Subject.Name + " " + strings.Join(facts.Asked.Names(), ",")
				if facts.Around.Node != nil {
					line += " of " + strings.Join(facts.Around.Node.Addresses, ",")
				}
				if facts.AtLeast > 0 {
					line += fmt.Sprintf("at least %d", facts.AtLeast)
				}
				lines = append(lines, line)
			}
		}
	}
	d.Paper.Batches = nil
	return lines
}

func (d *desk) wrote(want ...string) {
	d.Helper()
	got := d.told()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		d.Errorf("written:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// nodes tells the source of a Node whose facts came with that event.
func (d *desk) nodes(newest uint64) {
	d.Follow(func(yield func(observers.Thing) bool) {
		yield(observers.Thing{Subject: journal.NodeSubject("w1", "uid-w1"), Newest: newest})
	})
}

func decided(object *certificatesv1.CertificateSigningRequest, decision certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	object = object.DeepCopy()
	object.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: decision}}
	return object
}

func at(object *certificatesv1.CertificateSigningRequest, ago time.Duration) *certificatesv1.CertificateSigningRequest {
	object.CreationTimestamp = metav1.NewTime(time.Now().Add(-ago))
	return object
}

func TestARequestIsToldOfAsLongAsNobodyHasDecided(t *testing.T) {
	for _, polls := range []bool{false, true} {
		watching(t, nil, "", func(d *desk) {
			d.Forbidden["watch certificatesigningrequests"] = polls
			old := csrsim.Asks("old", "w1", "w1")
			d.Put(decided(old, certificatesv1.CertificateApproved))
			other := csrsim.Asks("other", "w1", "w1")
			other.Spec.SignerName = "example.com/other"
			d.Put(other)
		}, func(d *desk) {
			turn := func() { d.Pass(time.Second) }
			if polls {
				turn = func() { d.Pass(70 * time.Second) }
			}
			d.wrote()
			d.looked(0)
			a, b, c := csrsim.Asks("a", "w1", "w1"), csrsim.Asks("b", "w2", "10.0.0.1"), csrsim.Asks("c", "w3", "w1")
			d.Put(a, b, c)
			turn()
			d.wrote("a w1 of w1,10.0.0.1", "b 10.0.0.1 of w1,10.0.0.1", "c w1 of w1,10.0.0.1")
			d.Put(decided(a, certificatesv1.CertificateApproved), decided(b, certificatesv1.CertificateDenied))
			d.Remove(c)
			turn()
			d.wrote("a approved", "b denied", "c deleted")
			d.set(func() { d.looks = 0 })
			d.Pass(time.Hour)
			d.looked(0)
			d.wrote()
		})
	}
}

func TestItIsLookedAnewWhenTheFactsOfANodeHaveChangedAndNotAtEachEvent(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		d.nodes(5)
		d.Settle()
		d.looked(0)
		d.Put(csrsim.Asks("a", "w1", "w1"))
		d.Settle()
		d.wrote("a w1 of w1,10.0.0.1")
		d.nodes(5)
		d.Pass(time.Second)
		d.set(func() { d.looks, d.addresses = 0, []string{"w1"} })
		for range 100 {
			d.nodes(5)
		}
		d.Pass(time.Second)
		d.looked(0)
		d.nodes(6)
		d.Pass(time.Second)
		d.looked(1)
		d.wrote("a w1 of w1")
		// Not all that is judged by is a fact of a Node.
		d.set(func() { d.addresses = []string{"w1", "203.0.113.1"} })
		d.Pass(6 * time.Minute)
		d.wrote("a w1 of w1,203.0.113.1")
	})
}

func TestALookThatFailsIsTakenAgainAndTellsNothing(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		d.set(func() { d.broken = kube.ErrUnavailable })
		d.Put(csrsim.Asks("a", "w1", "w1"))
		d.Pass(10 * time.Second)
		d.wrote()
		d.set(func() { d.broken = nil })
		d.Pass(time.Minute)
		d.wrote("a w1 of w1,10.0.0.1")
	})
}

func known(name string) observercsr.Known {
	object := csrsim.Asks(name, "w1", "w1")
	return observercsr.Known{
		Subject: journal.Subject{Kind: observercsr.Kind, Name: name, UID: string(object.UID), Node: "w1"},
		Facts: journal.CSRFacts{
			Asked: csr.Parse(object), Around: journal.CSRAround{Node: &journal.CSRNode{UID: "uid-w1", Addresses: []string{"w1", "10.0.0.1"}}},
		},
	}
}

func TestARestartTellsWhatHappenedMeanwhileAndNothingTwice(t *testing.T) {
	stays, went, approved := known("stays"), known("went"), known("was-approved")
	watching(t, []observercsr.Known{stays, went, approved}, "", func(d *desk) {
		d.Put(csrsim.Asks("stays", "w1", "w1"))
		d.Put(decided(at(csrsim.Asks("was-approved", "w1", "w1"), time.Minute), certificatesv1.CertificateApproved))
	}, func(d *desk) {
		told := d.told()
		// The request that stays is signed anew by this test, so that its facts differ.
		if got := strings.Join(told, "\n"); got != "stays w1 of w1,10.0.0.1\nwas-approved approved\nwent deleted" {
			t.Errorf("written:\n%s", got)
		}
	})
}

func TestNothingIsAskedWhileTheSettingIsOff(t *testing.T) {
	watching(t, []observercsr.Known{known("a")}, "auto_approve_kubelet_csrs is off", func(d *desk) {
		d.Put(csrsim.Asks("a", "w1", "w1"))
	}, func(d *desk) {
		d.wrote("a auto_approve_kubelet_csrs is off")
		d.Pass(time.Hour)
		d.looked(0)
		d.Called(map[string]int{})
	})
}

func TestAFloodOfOneRequesterIsToldOfOnceAndDelaysNobody(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		for i := range 1000 {
			d.Put(csrsim.Asks(fmt.Sprintf("flood-%04d", i), "w1", "w1"))
		}
		d.Put(csrsim.Asks("good", "w2", "w1"))
		d.Pass(2 * time.Second)
		told := d.told()
		if len(told) > 8 || !strings.Contains(strings.Join(told, "\n"), "good w1") {
			t.Errorf("written:\n%s", strings.Join(told, "\n"))
		}
		for i := range 1000 {
			d.Put(csrsim.Asks(fmt.Sprintf("flood-%04d", 1000+i), "w1", "w1"))
			if i%100 == 0 {
				d.Pass(2 * time.Second)
			}
		}
		d.Pass(30 * time.Minute)
		told = append(told, d.told()...)
		if len(told) > 30 {
			t.Errorf("2000 requests of one take %d events:\n%s", len(told), strings.Join(told, "\n"))
		}
		if !strings.Contains(strings.Join(told, "\n"), "further ones of system:node:w1 at least 1000") {
			t.Errorf("nothing tells of the flood:\n%s", strings.Join(told, "\n"))
		}
	})
}

func TestARequestThatAnotherReplacedIsLeftAloneAndTheNewestComesFirst(t *testing.T) {
	watching(t, nil, "", func(d *desk) {
		d.Put(decided(at(csrsim.Asks("approved", "w1", "w1"), time.Minute), certificatesv1.CertificateApproved))
		for i := range 50 {
			d.Put(at(csrsim.Asks(fmt.Sprintf("stale-%d", i), "w1", "w1"), time.Hour))
		}
		d.Put(at(csrsim.Asks("newest", "w1", "w1"), time.Second))
		for i := range 5 {
			d.Put(at(csrsim.Asks(fmt.Sprintf("refused-%d", i), "w2", "w1"), time.Duration(5-i)*15*time.Minute))
		}
	}, func(d *desk) {
		d.wrote("newest w1 of w1,10.0.0.1", "refused-2 w1 of w1,10.0.0.1", "refused-3 w1 of w1,10.0.0.1", "refused-4 w1 of w1,10.0.0.1")
		d.Put(csrsim.Asks("refused-5", "w2", "10.0.0.1"))
		d.Settle()
		d.wrote("refused-2 newer ones of the same requester take its place", "refused-5 10.0.0.1 of w1,10.0.0.1")
	})
}

func TestAThousandNodesThatJoinAtOnceCostFewLooks(t *testing.T) {
	const nodes = 1000
	watching(t, nil, "", nil, func(d *desk) {
		request := csrsim.Sign(csrsim.Template("w1", "w1"), nil)
		for i := range nodes {
			name := fmt.Sprintf("w-%04d", i)
			d.Put(csrsim.Object("csr-"+name, name, request))
		}
		d.Pass(5 * time.Second)
		if told := d.told(); len(told) != nodes {
			t.Errorf("%d requests are told of", len(told))
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.looks > 5 {
			t.Errorf("looked around %d times", d.looks)
		}
	})
}
