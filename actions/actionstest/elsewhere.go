package actionstest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/journal/memory"
)

func (s Scene) finishedElsewhere(t *testing.T) []string {
	want, points := s.undisturbed(t)
	return s.elsewhere(t, want, points, crashpoints.Choose(t, points), func(*mirror.Content) {})
}

func (s Scene) heldWithoutOutputs(t *testing.T) []string {
	want, points := s.undisturbed(t)
	var some []int
	for at := points; at > 0; at -= max(1, points/12) {
		some = append(some, at)
	}
	return s.elsewhere(t, want, points, some, func(content *mirror.Content) {
		for _, action := range content.Actions {
			for id, step := range action.Steps {
				if step.Done() {
					step.Outputs = nil
					action.Steps[id] = step
				}
			}
		}
	})
}

// elsewhere kills the process at each of the points. Another process then continues from the mirror, after loses has
// changed the mirror.
func (s Scene) elsewhere(t *testing.T, want string, points int, chosen []int, loses func(*mirror.Content)) (problems []string) {
	for _, at := range chosen {
		s.play(t, func(w *World, stage Stage) {
			if stage.Cluster == nil {
				stage.Cluster = kubesim.New()
			}
			stage.liveMirrored(w, at)
			if !stage.moveElsewhere(w, loses) {
				problems = append(problems, fmt.Sprintf("killed at point %d of %d, the action is not adopted", at, points))
				return
			}
			going := w.Start(stage.config(w, nil))
			w.Pass(time.Minute)
			if w.heldForOutputs() {
				going.Halt()
				return
			}
			going.End()
			if got := stage.end(w); got != want {
				problems = append(problems, fmt.Sprintf("killed at point %d of %d, the action ends elsewhere as %s, want %s; %q", at, points, got, want, w.Story()))
			}
		})
	}
	return problems
}

// startMirror starts to mirror a journal. The returned function stops it.
func (s Stage) startMirror(w *World, id string) (*mirror.Mirror, func()) {
	m := mirror.New(s.Cluster, id, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(w.T.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Run(ctx)
	}()
	return m, func() { stop(); <-ended }
}

// mirroredStore updates the mirror after each append, as the loop does.
type mirroredStore struct {
	journal.Store
	world  *World
	mirror *mirror.Mirror
	// turn keeps the updates in the order of the appends.
	turn *sync.Mutex
}

func (s mirroredStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	events, err := s.Store.Append(ctx, drafts...)
	if err == nil {
		s.mirror.Update(s.world.Folded().OpenActions(), kubesim.ClusterUID, journal.Carried{})
	}
	return events, err
}

// liveMirrored runs one process with a mirror. The process dies at a crash point.
func (s Stage) liveMirrored(w *World, at int) {
	w.T.Helper()
	m, stop := s.startMirror(w, "first")
	defer stop()
	ctx, kill := context.WithTimeout(w.T.Context(), 24*time.Hour)
	defer kill()
	f := NewFuse(at, kill)
	cfg := s.config(w, f)
	cfg.Store = mirroredStore{f.Store(w.Store), w, m, new(sync.Mutex)}
	cfg.Preflights[actions.Mirrored] = actions.PreflightFunc(func(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
		if err := m.Ready(ctx, ActionID, "action", time.Minute); err != nil {
			return actions.Hold(err.Error())
		}
		return actions.Pass()
	})
	// Otherwise it is random whether the request is mirrored before the process dies.
	m.Update(w.Folded().OpenActions(), kubesim.ClusterUID, journal.Carried{})
	if err := m.Sync(ctx); err != nil {
		w.T.Error(err)
	}
	_ = actions.NewRunner(cfg).Run(ctx, w.Record(), nil) // the process died, or the action is done
}

// moveElsewhere starts an EKCO on another node with an empty journal, and reports whether that EKCO adopted the action.
func (s Stage) moveElsewhere(w *World, loses func(*mirror.Content)) bool {
	w.T.Helper()
	w.Store = memory.New()
	m, stop := s.startMirror(w, "second")
	defer stop()
	content, err := m.Load(w.T.Context())
	if errors.Is(err, kube.ErrNotFound) {
		return false
	}
	if err != nil {
		w.T.Fatal(err)
	}
	loses(&content)
	drafts, err := mirror.Adopt(content, fsm.NewState().OpenActions(), "second", kubesim.ClusterUID)
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := w.Store.Append(w.T.Context(), drafts...); err != nil {
		w.T.Fatal(err)
	}
	return len(drafts) > 0
}

// heldForOutputs reports whether the action is held with a reason that names a done step without outputs.
func (w *World) heldForOutputs() bool {
	for _, record := range w.Folded().OpenActions() {
		hold, held := record.Holds[""]
		for id, step := range record.Steps {
			if held && hold.Preflight == actions.HoldReadable && step.Done() && len(step.Outputs) == 0 && strings.Contains(hold.Reason, strconv.Quote(id)) {
				return true
			}
		}
	}
	return false
}
