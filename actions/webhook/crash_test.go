package webhook

import (
	"testing"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/webhook"
)

// scene is an action in a cluster that prepare has changed. It ends as described by want.
func scene(want string, points int, prepare func(c *cluster)) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(w *actionstest.World) actionstest.Stage {
		c := newCluster(w)
		prepare(c)
		return actionstest.Stage{
			Kinds: func(f *actionstest.Fuse) []actions.Definition { return []actions.Definition{New(c.start(f))} },
			Outcome: func() string {
				got := c.outcome()
				if got != want {
					w.T.Errorf("it ends as %q, want %q", got, want)
				}
				return got
			},
		}
	}}
}

const trustsBoth = "pod-image-overrides.kurl.sh trusts 1, rook-priority.kurl.sh trusts 1"

// renewal has one webhook, because its matrix takes long.
var (
	renewal = scene("served: true, pod-image-overrides.kurl.sh trusts 1, Secret written 2 times", 36, func(c *cluster) {
		c.settings.PriorityClass = ""
		c.registered()
		c.request(certificates[0])
	})
	removal = scene("served: false, , Secret written 1 times", 8, func(c *cluster) {
		c.registered()
		c.settings = webhook.Settings{}
		c.request(nil)
	})
)

func TestKilledAtAnyPoint(t *testing.T) {
	actionstest.Scenes{
		"first registration": scene("served: true, "+trustsBoth+", Secret written 1 times", 36, func(c *cluster) { c.request(nil) }),
		"renewal": scene("served: true, "+trustsBoth+", Secret written 2 times", 36, func(c *cluster) {
			c.registered()
			c.request(certificates[0])
		}),
		"removal": removal,
		"restart": scene("served: true, pod-image-overrides.kurl.sh trusts 1, Secret written 1 times", 20, func(c *cluster) {
			c.settings.PriorityClass = ""
			c.registered()
			c.begins = nil
			c.request(nil)
		}),
		"lost Secret": scene("served: true, pod-image-overrides.kurl.sh trusts 1, Secret written 2 times", 36, func(c *cluster) {
			c.settings.PriorityClass = ""
			c.registered()
			c.objects.Remove(webhook.SecretRef)
			c.request(nil)
		}),
		"one setting removed": scene("served: true, rook-priority.kurl.sh trusts 1, Secret written 1 times", 20, func(c *cluster) {
			c.registered()
			c.settings.Overrides = nil
			c.request(nil)
		}),
	}.KilledAtAnyPoint(t)
}

func TestKilledTwice(t *testing.T) { actionstest.Scenes{"removal": removal}.KilledTwice(t) }

func TestDoneAgain(t *testing.T) {
	actionstest.Scenes{"renewal": renewal, "removal": removal}.DoneAgain(t)
}

func TestFinishedElsewhere(t *testing.T) {
	actionstest.Scenes{"removal": removal}.FinishedElsewhere(t)
}

func TestResumedFromOlderJournal(t *testing.T) {
	actionstest.Scenes{"renewal": renewal}.ResumedFromOlderJournal(t)
}
