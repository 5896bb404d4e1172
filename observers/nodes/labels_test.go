package nodes_test

import (
	"maps"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/nodes"
)

// TestOnlyLabelsThatAreAskedForAreFacts: kubelets and others change labels all the time.
func TestOnlyLabelsThatAreAskedForAreFacts(t *testing.T) {
	labelled := func(labels map[string]string) *corev1.Node {
		return node("a", "1", func(n *corev1.Node) { n.Labels = labels })
	}
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(labelled(nil))
		b.Sources = func() []observers.Source {
			return []observers.Source{nodes.New(nodes.Options{Nodes: b.Nodes(), Labels: []string{"store"}})}
		}
	}, func(b *bench) {
		wrote := func(want ...map[string]string) {
			t.Helper()
			drafts := b.Paper.Drafts()
			if len(drafts) != len(want) {
				t.Fatalf("%d facts, want %d", len(drafts), len(want))
			}
			for i, draft := range drafts {
				if got := draft.Payload.(journal.NodeObserved).Labels; !maps.Equal(got, want[i]) {
					t.Errorf("the labels are %v, want %v", got, want[i])
				}
			}
		}
		wrote(nil)
		for _, step := range []struct {
			labels map[string]string
			facts  []map[string]string
		}{
			{map[string]string{"zone": "x"}, nil},
			{map[string]string{"zone": "y", "store": "yes"}, []map[string]string{{"store": "yes"}}},
			{map[string]string{"store": "yes"}, nil},
			{map[string]string{"store": ""}, []map[string]string{{"store": ""}}},
			{nil, []map[string]string{nil}},
		} {
			b.Put(labelled(step.labels))
			b.Settle()
			wrote(step.facts...)
		}
	})
}

// TestALabelThatChangesAllTheTimeIsToldNowAndThen, and the loss of its node at once.
func TestALabelThatChangesAllTheTimeIsToldNowAndThen(t *testing.T) {
	labelled := func(value string, change ...func(*corev1.Node)) *corev1.Node {
		return node("a", "1", append(change, func(n *corev1.Node) { n.Labels = map[string]string{"store": value} })...)
	}
	watching(t, func(b *bench, _ *observers.Options) {
		b.Put(labelled("0"))
		b.Sources = func() []observers.Source {
			return []observers.Source{nodes.New(nodes.Options{Nodes: b.Nodes(), Labels: []string{"store"}})}
		}
	}, func(b *bench) {
		for i := range 100 {
			b.Put(labelled(strconv.Itoa(i)))
			b.Pass(time.Second)
		}
		if n := len(b.Paper.Drafts()); n > 7 {
			t.Errorf("within 100 seconds the journal is told %d times", n)
		}
		b.Put(labelled("last", tainted))
		b.Pass(time.Second)
		drafts := b.Paper.Drafts()
		if len(drafts) != 1 || drafts[0].Payload.(journal.NodeObserved).Ready() {
			t.Errorf("of the loss is told %+v", drafts)
		}
		b.Pass(10 * time.Minute)
		drafts = b.Paper.Drafts()
		if len(drafts) != 1 || drafts[0].Payload.(journal.NodeObserved).Labels["store"] != "last" {
			t.Errorf("of the last value is told %+v", drafts)
		}
	})
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: journal.TaintNotReady, Effect: corev1.TaintEffectNoSchedule}}
}
