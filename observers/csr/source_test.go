package csr_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	observercsr "github.com/replicatedhq/ekco/observers/csr"
	"github.com/replicatedhq/ekco/observers/nodes"
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
			neighbours := observercsr.NewNeighbours()
			return []observers.Source{
				nodes.New(nodes.Options{Nodes: b.Nodes(), Also: neighbours}),
				observercsr.New(observercsr.Options{Requests: b.Requests(), Around: d.around, Neighbours: neighbours, Known: known, Off: off}),
			}
		}
		if prepare != nil {
			prepare(d)
		}
	}, func(*observerstest.Bench) { test(d) })
}

func (d *desk) around(_ context.Context, _ time.Time, asked ...journal.CSR) ([]journal.CSRAround, error) {
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
	for _, draft := range d.Paper.Drafts() {
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
			if facts.Untold > 0 {
				line += fmt.Sprintf(" after %d others", facts.Untold)
			}
			if facts.AtLeast > 0 {
				line += fmt.Sprintf("at least %d", facts.AtLeast)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func (d *desk) wrote(want ...string) {
	d.Helper()
	got := d.told()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		d.Errorf("written:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
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

// node is Node w9, changed, whose heartbeat is the present time.
func node(changes ...func(*corev1.Node)) *corev1.Node {
	return observerstest.Node("w9", "uid-w9", append(changes, observerstest.Heartbeat)...)
}

func address(kind corev1.NodeAddressType, address string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: kind, Address: address})
	}
}

func labelled(label string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels = map[string]string{label: ""} }
}

func TestARequestThatWaitsIsLookedAtAnewWhateverChangesOfANodeThatItIsJudgedBy(t *testing.T) {
	watching(t, nil, "", func(d *desk) { d.Put(node()) }, func(d *desk) {
		d.Put(node(labelled(kube.LabelMaster)))
		d.Put(node())
		d.Settle()
		d.looked(0) // no request is pending
		d.Put(csrsim.Asks("a", "w1", "w1"))
		d.Settle()
		d.looked(1)
		d.Pass(10 * time.Second)
		for name, change := range map[string]func(){
			"an external address": func() { d.Put(node(address(corev1.NodeExternalIP, "203.0.113.7"))) },
			"a second InternalIP": func() { d.Put(node(address(corev1.NodeInternalIP, "fd00::9"))) },
			"another sort":        func() { d.Put(node(address(corev1.NodeExternalIP, "fd00::9"))) },
			"an internal name":    func() { d.Put(node(address(corev1.NodeInternalDNS, "w9.internal"))) },
			"no addresses":        func() { d.Put(node(func(n *corev1.Node) { n.Status.Addresses = nil })) },
			"unreachable":         func() { d.Put(node(observerstest.Unreachable(time.Now()))) },
			"a primary":           func() { d.Put(node(labelled(kube.LabelControlPlane))) },
			"replaced":            func() { d.Put(observerstest.Node("w9", "uid-new")) },
			"deleted":             func() { d.Remove(node()) },
			"unseen":              func() { d.Remove(node()); d.Forget(); d.BreakWatches(); d.Pass(5 * time.Second) },
		} {
			change()
			d.Settle()
			if d.looks != 1 {
				d.Errorf("%s: looked %d times", name, d.looks)
			}
			d.Pass(10 * time.Second)
			d.Put(node())
			d.Settle()
			d.Pass(10 * time.Second)
			d.set(func() { d.looks = 0 })
		}
		for range 100 {
			d.Pass(time.Second)
			d.Put(node())
		}
		d.looked(0)
	})
}

func TestTheIdentitiesOfTheClusterAreLookedAtAnewEveryFiveMinutesWhileARequestWaits(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		d.Put(csrsim.Asks("a", "w1", "w1"))
		d.Settle()
		d.wrote("a w1 of w1,10.0.0.1")
		d.set(func() { d.looks, d.addresses = 0, []string{"w1", "203.0.113.1"} })
		d.Pass(5*time.Minute - time.Second)
		d.looked(0)
		d.Pass(2 * time.Second)
		d.looked(1)
		d.wrote("a w1 of w1,203.0.113.1")
		d.Pass(time.Hour)
		d.looked(12)
	})
}

func TestANodeThatChangesAllTheTimeIsLookedAtEveryFiveSeconds(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		d.Put(csrsim.Asks("a", "w1", "w1"))
		d.Settle()
		d.Pass(time.Minute)
		d.set(func() { d.looks = 0 })
		for i := range 600 {
			d.Put(node(address(corev1.NodeExternalIP, fmt.Sprintf("10.9.%d.%d", i/256, i%256))))
			d.Pass(100 * time.Millisecond)
		}
		d.looked(12)
	})
}

// flap has the Node of all requests change its addresses n times, once in that time.
func (d *desk) flap(n int, every time.Duration) {
	for i := range n {
		d.set(func() { d.addresses = []string{"w1", fmt.Sprintf("10.9.%d.%d", i/256, i%256)} })
		d.Put(node(address(corev1.NodeExternalIP, fmt.Sprintf("10.9.%d.%d", i/256, i%256))))
		d.Pass(every)
	}
}

func TestARequestOfANodeWhoseAddressesChangeAllTheTimeIsToldOfSeldomAndHowOftenItChanged(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		d.Put(csrsim.Asks("a", "w1", "w1"))
		d.Pass(10 * time.Second)
		d.told()
		d.flap(60, 10*time.Second) // five at once, and one five minutes after the first
		told := d.told()
		if len(told) != 6 || told[4] != "a w1 of w1,10.9.0.4" || told[5] != "a w1 of w1,10.9.0.29 after 24 others" {
			t.Errorf("written:\n%s", strings.Join(told, "\n"))
		}
		d.flap(6*60, 10*time.Second)
		if told := d.told(); len(told) != 12 {
			t.Errorf("in the next hour there were %d:\n%s", len(told), strings.Join(told, "\n"))
		}
		d.Pass(time.Minute)
		d.wrote("a w1 of w1,10.9.1.103 after 29 others")
		// Another one is told of at once.
		d.Put(csrsim.Asks("b", "w2", "w1"))
		d.Settle()
		d.wrote("b w1 of w1,10.9.1.103")
		d.flap(1, time.Second)
		d.Pass(5 * time.Second)
		d.wrote("b w1 of w1,10.9.0.0")
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

func TestLooksThatFailUseUpNothingOfWhatARequesterMayHave(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		d.set(func() { d.broken = kube.ErrUnavailable })
		d.Put(csrsim.Asks("a", "w1", "w1"))
		d.Pass(30 * time.Minute)
		d.wrote()
		d.set(func() { d.broken = nil })
		d.Pass(time.Minute)
		d.wrote("a w1 of w1,10.0.0.1")
		for i := range 9 {
			d.Put(csrsim.Asks(fmt.Sprintf("b-%d", i), "w1", "w1"))
			d.Pass(time.Second)
		}
		if told := strings.Join(d.told(), "\n"); !strings.Contains(told, "b-8 w1") {
			d.Errorf("the tenth is not looked at:\n%s", told)
		}
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
		d.Called(map[string]int{"list nodes": 1, "watch nodes": 1}) // by the source of nodes
	})
}

func TestAFloodOfOneRequesterIsToldOfOnceAndDelaysNobody(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		for i := range 1000 {
			d.Put(csrsim.Asks(fmt.Sprintf("flood-%04d", i), "w1", "w1"))
		}
		d.Put(csrsim.Asks("good", "w2", "w1"))
		d.Pass(time.Second)
		kinds := func() map[string]int {
			kinds := map[string]int{}
			for _, line := range d.told() {
				_, what, _ := strings.Cut(line, " ")
				kinds[what]++
			}
			return kinds
		}
		got := kinds()
		delete(got, "ones of system:node:w1 at least 10") // if so few had come when it was looked first
		if want := map[string]int{"w1 of w1,10.0.0.1": 4, "ones of system:node:w1 at least 100": 1}; !maps.Equal(got, want) {
			t.Errorf("written: %v", got)
		}
		d.set(func() { d.looks = 0 })
		for i := range 1000 {
			d.Put(csrsim.Asks(fmt.Sprintf("flood-%04d", 1000+i), "w1", "w1"))
			if i%10 == 9 {
				d.Pass(10 * time.Second)
			}
		}
		// Seven more are let in, each for one before it, and then no other; that there are at
		// least a thousand is told once.
		want := map[string]int{"w1 of w1,10.0.0.1": 7, "newer requests of the same requester replace it": 7, "ones of system:node:w1 at least 1000": 1}
		if got := kinds(); !maps.Equal(got, want) {
			t.Errorf("written: %v, want %v", got, want)
		}
		// At most one look for each of those, and one each five minutes.
		if d.looks > 7+3 {
			t.Errorf("looked around %d times", d.looks)
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
		d.wrote("refused-2 newer requests of the same requester replace it", "refused-5 10.0.0.1 of w1,10.0.0.1")
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
		if d.looks > 2 { // the first may be of those that came before the others
			t.Errorf("looked around %d times", d.looks)
		}
	})
}

func TestWhatOneRequesterMayHaveInAnHourComesBackAfterIt(t *testing.T) {
	watching(t, nil, "", nil, func(d *desk) {
		for i := range 12 {
			d.Put(csrsim.Asks(fmt.Sprintf("a-%02d", i), "w1", "w1"))
			d.Pass(time.Minute)
		}
		if told := strings.Join(d.told(), "\n"); !strings.Contains(told, "a-09 w1") || strings.Contains(told, "a-10 w1") {
			d.Errorf("written:\n%s", told)
		}
		d.Pass(time.Hour)
		if told := strings.Join(d.told(), "\n"); !strings.Contains(told, "a-11 w1") || strings.Contains(told, "a-08 w1") {
			d.Errorf("written after an hour:\n%s", told)
		}
	})
}

func TestAnOlderApprovalDoesNotBringBackWhatANewerOneReplaced(t *testing.T) {
	watching(t, nil, "", func(d *desk) {
		newer, older := csrsim.Asks("x-newer", "w1", "w1"), csrsim.Asks("y-older", "w1", "w1")
		d.Put(decided(at(newer, time.Minute), certificatesv1.CertificateApproved), decided(at(older, time.Hour), certificatesv1.CertificateApproved))
		d.Put(at(csrsim.Asks("stale", "w1", "w1"), 30*time.Minute))
	}, func(d *desk) { d.wrote() })
}
