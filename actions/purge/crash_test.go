package purge_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// scene plays in a world of nodes in which one is purged.
func scene(points int, set func(w *world)) actionstest.Scene {
	return actionstest.Scene{Points: points, Set: func(bare *actionstest.World) actionstest.Stage {
		w := newWorld(bare)
		w.Watch()
		set(w)
		return w.stage()
	}}
}

// once is a scene that cannot be asked for again.
func once(s actionstest.Scene) actionstest.Scene {
	s.Once = true
	return s
}

func (w *world) stage() actionstest.Stage {
	return actionstest.Stage{Kinds: w.kinds, Outcome: w.outcome, Cluster: w.Cluster}
}

// live runs one incarnation to its end, or to its death at a crash point.
func (w *world) live(at int) (*actionstest.Fuse, error) { return w.stage().Live(w.World.World, at) }

// outcome is what the world has come to.
func (w *world) outcome() string {
	if w.describe == nil {
		return w.Outcome()
	}
	return w.Outcome() + ", " + w.describe()
}

func scenes() actionstest.Scenes {
	return actionstest.Scenes{
		"purge": scene(8, func(w *world) { purged(w, journal.ActionRequested{}) }),
		"manual purge of a live node": scene(8, func(w *world) {
			purged(w, journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true}})
			w.Cluster.ReturnNode("w1")
		}),
		"manual purge of a live primary with OSDs": scene(40, func(w *world) {
			s := lostPrimary(w).watched()
			s.reconcile = time.Hour
			s.runs(5 * time.Second)
			s.ask(live)
		}),
		"purge of everything": scene(40, func(w *world) { lostPrimary(w).watched().ask(journal.ActionRequested{}) }),
		"purge of everything with a wait": scene(40, func(w *world) {
			s := lostPrimary(w).watched()
			s.wait = time.Hour
			s.ask(journal.ActionRequested{Manual: true})
		}),
		"purge of everything, a disk moves meanwhile": scene(40, func(w *world) {
			s := lostPrimary(w).watched()
			s.rook.AfterEffect = func(effect string) {
				if effect == "delete-deployment rook-ceph-osd-12" && len(s.deploymentsOn("p9")) == 0 {
					moves["and Rook bound its Deployment to the machine"](s)
				}
			}
			s.ask(journal.ActionRequested{})
		}),
		"purge of everything, Ceph answers later": scene(40, func(w *world) {
			s := lostPrimary(w).watched()
			s.ceph.Outage(true)
			time.AfterFunc(10*time.Minute, func() { s.ceph.Outage(false) })
			s.ask(journal.ActionRequested{Manual: true})
		}),
		"cancelled purge of a live primary with OSDs": once(scene(12, cancelled)),
	}
}

// cancelled is the purge of a live primary that a person cancels halfway.
func cancelled(w *world) {
	s := lostPrimary(w)
	if err := s.ceph.Reweight(w.T.Context(), 107, 0.8); err != nil {
		w.T.Fatal(err)
	}
	s.rook.EditNode("w1", anEntry)
	s.reconcile = 48 * time.Hour
	s.watched().runs(0)
	s.ask(live)
	r := s.Start(s.cfg())
	w.Pass(2 * time.Minute)
	r.Halt()
	s.Cancel(nil)
}

func TestAnActionKilledAtAnyPointEndsAsIfItHadNotBeen(t *testing.T) { scenes().KilledAtAnyPoint(t) }

func TestAnActionKilledTwiceEndsAsIfItHadNotBeen(t *testing.T) { scenes().KilledTwice(t) }

func TestAnActionThatIsDoneAgainChangesNothingMore(t *testing.T) { scenes().DoneAgain(t) }

func TestAnActionKilledAtAnyPointIsFinishedElsewhereFromTheMirror(t *testing.T) {
	scenes().FinishedElsewhere(t)
}

func TestAPurgeWithoutWhatItsStepsLeftEndsTheSameOrIsHeld(t *testing.T) {
	scenes().HeldWithoutOutputs(t)
}

func TestPurgeWithoutOneStepsOutputsEndsTheSameOrIsHeld(t *testing.T) {
	scenes().HeldWithoutOneOutput(t)
}

func TestPurgeResumesFromAnOlderJournal(t *testing.T) { scenes().ResumedFromOlderJournal(t) }

func TestTheDeadDoNotActOnAnotherJournal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{})
		life, err := w.live(1)
		if err == nil || life.Where() != "before append action.planned" {
			t.Errorf("killed %s: %v", life.Where(), err)
		}
		if len(w.Cluster.Effects()) != 0 || !slices.Equal(w.Story(), []string{"requested"}) {
			t.Errorf("after its death it did %v and wrote %q", w.Cluster.Effects(), w.Story())
		}
		synctest.Wait()
	})
}
