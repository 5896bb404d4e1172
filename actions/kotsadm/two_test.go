package kotsadm

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
)

// TestTwoEKCOsGrowTheDatabaseOnce: each has a journal of its own, and both have read the
// database before either changes it.
func TestTwoEKCOsGrowTheDatabaseOnce(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		d := installed(w, single)
		other := &database{World: actionstest.NewWorld(w.T), objects: d.objects, subject: d.subject}
		other.Terms = d.Terms
		d.objects.SetLatency(time.Second)
		d.ask()
		other.ask()
		second := other.Start(other.Config([]actions.Definition{other.definition()}))
		d.RunToEnd(d.Config([]actions.Definition{d.definition()}))
		second.End()
		if n := d.objects.Calls("update statefulsets"); n != 2 {
			t.Errorf("%d updates were tried, want one of each", n)
		}
		if d.outcome() != "3 (-bootstrap-expect=3) replicas, generation 2" || d.LastLine() != "ended done" || other.LastLine() != "ended done" {
			t.Errorf("it is %s: %q, %q", d.outcome(), d.Story(), other.Story())
		}
	})
}
