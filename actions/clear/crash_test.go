package clear_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
)

func scene(points int, set func(w *world)) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(bare *actionstest.World) actionstest.Stage {
		w := &world{nodestest.New(bare)}
		w.Watch()
		set(w)
		return actionstest.Stage{Kinds: w.kinds, Outcome: w.Outcome, Cluster: w.Cluster}
	}}
}

func scenes() actionstest.Scenes {
	return actionstest.Scenes{
		"clear": scene(12, func(w *world) { lostNode(w, 3) }),
		"clear more than one batch": scene(40, func(w *world) {
			w.Cluster.SetLatency(time.Second)
			lostNode(w, 18)
		}),
	}
}

func TestAnActionKilledAtAnyPointEndsAsIfItHadNotBeen(t *testing.T) { scenes().KilledAtAnyPoint(t) }

func TestAnActionKilledTwiceEndsAsIfItHadNotBeen(t *testing.T) { scenes().KilledTwice(t) }

func TestAnActionThatIsDoneAgainChangesNothingMore(t *testing.T) { scenes().DoneAgain(t) }

func TestAnActionKilledAtAnyPointIsFinishedElsewhereFromTheMirror(t *testing.T) {
	scenes().FinishedElsewhere(t)
}

func TestClearWithoutOneStepsOutputsEndsTheSameOrIsHeld(t *testing.T) {
	scenes().HeldWithoutOneOutput(t)
}

func TestClearResumesFromAnOlderJournal(t *testing.T) { scenes().ResumedFromOlderJournal(t) }
