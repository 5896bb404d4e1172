package nodes_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
)

// A node that flaps, is lost, returns and is lost again while EKCO does not see it
// (a watch that broke, an API that was away): the age of the new loss is told as
// that of the old one, against the taint's own word.
func TestALossOfANodeThatFlapsDoesNotCountFromALossBefore(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) {
		b.Settles = 30 * time.Minute
		b.Put(node("a", "1"))
	}, func(b *bench) {
		b.Paper.Take()
		flap(b, 5, 10*time.Second, time.Minute)
		b.Paper.Take()
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(29 * time.Minute)
		// It was back meanwhile, unseen; this loss is ten seconds old.
		b.Put(node("a", "1", unreachable(time.Now())))
		b.Pass(2 * time.Minute)
		b.Wrote()
	})
}

// Kubernetes adds the two taints of a loss one after the other, and removes them so. If they
// have different times, the one that is left for a moment looks later than the loss.
func TestTheTaintOfALossThatIsRemovedLastIsNoOtherLoss(t *testing.T) {
	watching(t, func(b *bench, _ *observers.Options) { b.Put(node("a", "1")) }, func(b *bench) {
		tainted := func(effect corev1.TaintEffect) corev1.Taint {
			added := metav1.Now()
			return corev1.Taint{Key: journal.TaintUnreachable, Effect: effect, TimeAdded: &added}
		}
		put := func(taints ...corev1.Taint) {
			b.Put(node("a", "1", func(n *corev1.Node) { n.Spec.Taints = taints }))
			b.Pass(2 * time.Second)
		}
		for range 2 { // a third loss would be one too many
			first := tainted(corev1.TaintEffectNoSchedule)
			put(first)
			second := tainted(corev1.TaintEffectNoExecute)
			put(first, second)
			put(second)
			put()
		}
		for _, line := range b.Paper.Take() {
			if strings.Contains(line, "flapping") {
				t.Errorf("it was told: %s", line)
			}
		}
	})
}
