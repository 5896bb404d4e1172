package actionstest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
)

// Scene is an action that the crash matrix interrupts at every point.
type Scene struct {
	// Set prepares the subject of the action, and puts the request on disk.
	Set func(w *World) Stage
	// Points is the minimum number of crash points of a run without a crash.
	Points int
	// Once is true if the action cannot be requested a second time, for example because it is cancelled.
	Once bool
}

// Stage is the simulated world of a scene.
type Stage struct {
	// Kinds returns the kinds of action for one process; see [Fuse.Mortal].
	Kinds func(f *Fuse) []actions.Definition
	// Outcome describes the state of the world and the number of its changes.
	Outcome func() string
	// Cluster is the cluster that has the mirror; nil means an empty cluster.
	Cluster kube.API
}

// Scenes is the crash matrix of a capability: its actions, by name.
type Scenes map[string]Scene

// Run runs all parts of the crash matrix.
func (s Scenes) Run(t *testing.T) {
	t.Run("killed at any point, it ends as if it had not been", s.KilledAtAnyPoint)
	t.Run("killed twice, it ends as if it had not been", s.KilledTwice)
	t.Run("done again, it changes nothing more", s.DoneAgain)
	t.Run("killed at any point, it is finished elsewhere from the mirror", s.FinishedElsewhere)
	t.Run("if the outputs of all steps are missing, it ends the same or is held", s.HeldWithoutOutputs)
	t.Run("if the output of one step is missing, it ends the same or is held", s.HeldWithoutOneOutput)
	t.Run("with an older copy of the journal, it ends the same", s.ResumedFromOlderJournal)
}

// KilledAtAnyPoint kills the process before and after each append and each effect, restarts it, and compares the end
// with the end of a run without a crash.
func (s Scenes) KilledAtAnyPoint(t *testing.T) { s.each(t, Scene.killedAtAnyPoint) }

// KilledTwice kills the first and the second process, each at up to twelve points of its life.
func (s Scenes) KilledTwice(t *testing.T) { s.each(t, Scene.killedTwice) }

// DoneAgain requests the action again after it is done, and kills the process at every point of both actions.
func (s Scenes) DoneAgain(t *testing.T) {
	repeated := make(Scenes)
	for name, scene := range s {
		if !scene.Once {
			repeated[name] = scene
		}
	}
	repeated.each(t, Scene.doneAgain)
}

// FinishedElsewhere kills the process at every point. Then another process with an empty journal finishes the action
// from the mirror.
func (s Scenes) FinishedElsewhere(t *testing.T) { s.each(t, Scene.finishedElsewhere) }

// HeldWithoutOutputs is FinishedElsewhere with a mirror that lacks the outputs of done steps, as a mirror of an older
// EKCO may. It tries up to twelve points. The action must either end the same, or be held with a reason that names such
// a step.
func (s Scenes) HeldWithoutOutputs(t *testing.T) { s.each(t, Scene.heldWithoutOutputs) }

// HeldWithoutOneOutput is HeldWithoutOutputs with a mirror that lacks the outputs of one step at a time: otherwise a
// step that holds the action would hide that another step should hold it, too. It tries a sample of steps and points.
func (s Scenes) HeldWithoutOneOutput(t *testing.T) { s.each(t, Scene.heldWithoutOneOutput) }

// ResumedFromOlderJournal kills the process at a sample of points. The next process has an older copy of the
// journal, which lacks events that the mirror has. It must end the same, even if another process continued from the
// mirror in between.
func (s Scenes) ResumedFromOlderJournal(t *testing.T) { s.each(t, Scene.resumedFromOlderJournal) }

// each tries the scenes in parallel and reports their problems.
func (s Scenes) each(t *testing.T, try func(s Scene, t *testing.T) []string) {
	t.Helper()
	t.Parallel()
	for name, scene := range s {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, problem := range try(scene, t) {
				t.Error(problem)
			}
		})
	}
}

// play runs act on the scene's stage in a bubble.
func (s Scene) play(t *testing.T, act func(w *World, stage Stage)) {
	t.Helper()
	InBubble(t, func(w *World) { act(w, s.Set(w)) })
}

// undisturbed plays the scene without a crash. It returns how the scene ends, and the number of its crash points.
func (s Scene) undisturbed(t *testing.T) (end string, points int) {
	t.Helper()
	s.play(t, func(w *World, stage Stage) {
		life, err := stage.Live(w, 0)
		if err != nil {
			w.T.Fatal(err)
		}
		end, points = stage.end(w), life.Passed()
	})
	if points < s.Points {
		t.Fatalf("only %d crash points, want at least %d", points, s.Points)
	}
	return end, points
}

// Live runs one process from the folded journal to the end of the action, or to its death at crash point at; 0 means no
// death.
func (s Stage) Live(w *World, at int) (*Fuse, error) {
	w.T.Helper()
	ctx, kill := context.WithTimeout(w.T.Context(), 24*time.Hour)
	defer kill()
	f := NewFuse(at, kill)
	cfg := s.config(w, f)
	cfg.Store = f.Store(w.Store)
	return f, actions.NewRunner(cfg).Run(ctx, w.Record(), nil)
}

// config returns the config of one process, without a log.
func (s Stage) config(w *World, f *Fuse) actions.Config {
	cfg := w.Config(s.Kinds(f))
	cfg.Log = slog.New(slog.DiscardHandler)
	return cfg
}

// end describes the final state of the world and of the action.
func (s Stage) end(w *World) string { return s.Outcome() + ", " + w.LastLine() }

func (s Scene) killedAtAnyPoint(t *testing.T) (problems []string) {
	want, points := s.undisturbed(t)
	for _, at := range crashpoints.Choose(t, points) {
		s.play(t, func(w *World, stage Stage) {
			stage.crashAndResume(w, at, 0)
			if got := stage.end(w); got != want {
				problems = append(problems, fmt.Sprintf("killed at point %d of %d, it ends as %s, want %s; %q", at, points, got, want, w.Story()))
			}
		})
	}
	return problems
}

// crashAndResume kills a first and a second process, and lets a third one finish the action. It returns how many
// processes died.
func (s Stage) crashAndResume(w *World, first, second int) (died int) {
	w.T.Helper()
	for _, at := range []int{first, second, 0} {
		if w.Ended() {
			return died
		}
		life, err := s.Live(w, at)
		if at == 0 && err != nil {
			w.T.Fatalf("the last incarnation ended with %v", err)
		}
		if at != 0 && life.dead && err == nil && !w.Ended() {
			w.T.Fatalf("killed %s, it claims to have ended", life.where)
		}
		if life.dead {
			died++
		}
	}
	return died
}

func (s Scene) killedTwice(t *testing.T) (problems []string) {
	want, points := s.undisturbed(t)
	endsAfter := 0 // a first point after which the second process ended before its own point
	for _, at := range crashpoints.ChooseOf(t, pairs(points)) {
		if at.first == endsAfter {
			continue // at this later point, the second process would also end too early
		}
		s.play(t, func(w *World, stage Stage) {
			if stage.crashAndResume(w, at.first, at.second) < 2 {
				endsAfter = at.first
			}
			if got := stage.end(w); got != want {
				problems = append(problems, fmt.Sprintf("killed at points %d and %d, it ends as %s, want %s", at.first, at.second, got, want))
			}
		})
	}
	return problems
}

// pair has the crash points of the first and the second process.
type pair struct{ first, second int }

// pairs combines up to twelve first points with as many second points.
func pairs(points int) (all []pair) {
	each := min(points, 12)
	for first := range each {
		for second := range each {
			all = append(all, pair{1 + first*points/each, 1 + second*points/each})
		}
	}
	return all
}

func (s Scene) doneAgain(t *testing.T) (problems []string) {
	_, points := s.undisturbed(t)
	for _, at := range crashpoints.Choose(t, points) {
		s.play(t, func(w *World, stage Stage) {
			request := w.Events()[0]
			stage.crashAndResume(w, at, 0)
			// The first action has already handled objects that EKCO must not touch, so the second one does not list
			// them.
			before, _, _ := strings.Cut(stage.end(w), "ended done")
			w.Request(request.Subject, *w.decoded(request).(*journal.ActionRequested))
			stage.crashAndResume(w, at, 0)
			if got, _, _ := strings.Cut(stage.end(w), "ended done"); got != before {
				problems = append(problems, fmt.Sprintf("done again, it went from %s to %s", before, got))
			}
		})
	}
	return problems
}
