package actionstest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/journal/memory"
)

func (s Scene) finishedElsewhere(t *testing.T) []string {
	want, points := s.undisturbed(t)
	var all []move
	for _, at := range crashpoints.Choose(t, points) {
		all = append(all, move{at: at, begin: fromMirror(func(*mirror.Content) {})})
	}
	return s.elsewhere(t, want, all)
}

func (s Scene) heldWithoutOutputs(t *testing.T) []string {
	want, points := s.undisturbed(t)
	var all []move
	for at := points; at > 0; at -= max(1, points/12) {
		all = append(all, move{at: at, begin: fromMirror(func(content *mirror.Content) {
			for _, action := range content.Actions {
				for id := range action.Steps {
					dropOutputs(action, id)
				}
			}
		})})
	}
	return s.elsewhere(t, want, crashpoints.ChooseOf(t, all))
}

func (s Scene) heldWithoutOneOutput(t *testing.T) []string {
	want, points, done := s.undisturbedSteps(t)
	var all []move
	for _, id := range slices.Sorted(maps.Keys(done)) {
		for at := done[id] + 1; at <= points; at++ {
			all = append(all, move{at: at, what: ", without the outputs of step " + id, begin: fromMirror(func(content *mirror.Content) {
				for _, action := range content.Actions {
					dropOutputs(action, id)
				}
			})})
		}
	}
	return s.elsewhere(t, want, sample(t, all))
}

func (s Scene) resumedFromOlderJournal(t *testing.T) []string {
	want, points := s.undisturbed(t)
	var all []move
	for at := 1; at <= points; at++ {
		for thirds := range 3 {
			what := fmt.Sprintf(", with the journal after %d/3 of its appends", thirds)
			all = append(all, move{at, what, fromCopy(thirds)}, move{at, what + " that comes back", fromReturned(thirds)})
		}
	}
	return s.elsewhere(t, want, sample(t, all))
}

// undisturbedSteps is undisturbed, and also returns the crash point after each step with outputs.
func (s Scene) undisturbedSteps(t *testing.T) (end string, points int, done map[string]int) {
	done = make(map[string]int)
	s.play(t, func(w *World, stage Stage) {
		ctx, kill := context.WithTimeout(w.T.Context(), 24*time.Hour)
		defer kill()
		f := NewFuse(0, kill)
		cfg := stage.config(w, f)
		cfg.Store = f.Store(watchedStore{w.Store, func(draft journal.Draft) {
			if step, is := draft.Payload.(*journal.StepDone); is && len(step.Outputs) > 0 {
				done[step.Step] = f.Passed() + 1
			}
		}})
		if err := actions.NewRunner(cfg).Run(ctx, w.Record(), nil); err != nil {
			w.T.Fatal(err)
		}
		end, points = stage.end(w), f.Passed()
	})
	return end, points, done
}

// watchedStore calls appends with each draft before it appends them.
type watchedStore struct {
	journal.Store
	appends func(journal.Draft)
}

func (s watchedStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	for _, draft := range drafts {
		s.appends(draft)
	}
	return s.Store.Append(ctx, drafts...)
}

// sample returns the moves to try. Each scene has hundreds; each test run tries a few, chosen at random.
func sample(t *testing.T, all []move) []move {
	t.Helper()
	if len(all) == 0 {
		return nil // no step has outputs
	}
	return crashpoints.Sample(t, all, 4)
}

// dropOutputs removes the outputs of a done step.
func dropOutputs(action journal.ActionRecord, id string) {
	if step := action.Steps[id]; step.Done() {
		step.Outputs = nil
		action.Steps[id] = step
	}
}

// move is how an action continues after its process died at a crash point. begin puts the journal of the next process
// into the world, and reports whether that journal has the action. Its argument has the copies that liveMirrored
// returns.
type move struct {
	at    int
	what  string
	begin func(s Stage, w *World, copies []*memory.Store) bool
}

// elsewhere kills the process at a crash point, and the next process continues with what is left, for each of the
// moves.
func (s Scene) elsewhere(t *testing.T, want string, moves []move) (problems []string) {
	for _, m := range moves {
		s.play(t, func(w *World, stage Stage) {
			if stage.Cluster == nil {
				stage.Cluster = kubesim.New()
			}
			copies := stage.liveMirrored(w, firstJournal, m.at)
			if !m.begin(stage, w, copies) {
				problems = append(problems, fmt.Sprintf("killed at point %d%s, the action is not adopted", m.at, m.what))
				return
			}
			if !w.Ended() {
				going := w.Start(stage.config(w, nil))
				w.Pass(time.Minute)
				if w.heldForOutputs() {
					going.Halt()
					return
				}
				going.End()
			}
			if got := stage.end(w); got != want {
				problems = append(problems, fmt.Sprintf("killed at point %d%s, the action ends elsewhere as %s, want %s; %q", m.at, m.what, got, want, w.Story()))
			}
		})
	}
	return problems
}

// startMirror mirrors a journal until the function it returns is called.
func (s Stage) startMirror(w *World, id string) (*mirror.Mirror, func()) {
	m := mirror.New(s.Cluster, id, slog.New(slog.DiscardHandler), mirror.Journal(w.Store))
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
	// copies are the journal before the first append, and after each.
	copies *[]*memory.Store
}

func (s mirroredStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	events, err := s.Store.Append(ctx, drafts...)
	if err == nil {
		*s.copies = append(*s.copies, s.world.Store.Copy())
		s.world.update(s.mirror)
	}
	return events, err
}

func (w *World) update(m *mirror.Mirror) {
	state := w.Folded()
	m.Update(state.OpenActions(), kubesim.ClusterUID, journal.Carried{Seq: state.Seq, Pauses: map[string]journal.Pause{}})
}

// liveMirrored runs one process with a mirror until it dies at a crash point. It returns copies of the journal from
// before the first append, and from after each append.
func (s Stage) liveMirrored(w *World, journalID string, at int) (copies []*memory.Store) {
	w.T.Helper()
	copies = append(copies, w.Store.Copy())
	m, stop := s.startMirror(w, journalID)
	defer stop()
	s.load(w, m)
	ctx, kill := context.WithTimeout(w.T.Context(), 24*time.Hour)
	defer kill()
	f := NewFuse(at, kill)
	cfg := s.config(w, f)
	cfg.Store = mirroredStore{f.Store(w.Store), w, m, new(sync.Mutex), &copies}
	cfg.Preflights[actions.Mirrored] = actions.PreflightFunc(func(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
		if err := m.Ready(ctx, ActionID, "action", time.Minute); err != nil {
			return actions.Hold(err.Error())
		}
		return actions.Pass()
	})
	// Otherwise chance decides whether the request is mirrored before the process dies.
	w.update(m)
	if err := m.Sync(ctx); err != nil {
		w.T.Error(err)
	}
	_ = actions.NewRunner(cfg).Run(ctx, w.Record(), nil) // dead or done
	return copies
}

// The ids of the journals of two EKCOs.
const (
	firstJournal  = "first"
	secondJournal = "second"
)

// fromMirror begins on another node, with an empty journal and the mirror as changed by loses.
func fromMirror(loses func(*mirror.Content)) func(Stage, *World, []*memory.Store) bool {
	return func(s Stage, w *World, _ []*memory.Store) bool {
		w.Store = memory.New()
		content, found := s.loadMirror(w, secondJournal)
		loses(&content)
		return found && w.adopt(content, secondJournal) > 0
	}
}

// fromCopy begins with an older copy of the journal, which has the given number of thirds of the appends.
func fromCopy(thirds int) func(Stage, *World, []*memory.Store) bool {
	return func(s Stage, w *World, copies []*memory.Store) bool {
		w.Store = copies[len(copies)*thirds/3]
		content, _ := s.loadMirror(w, firstJournal)
		there, err := journal.Contains(w.T.Context(), w.Store, content.At)
		if err != nil {
			w.T.Fatal(err)
		}
		if !there {
			w.adopt(content, firstJournal, mirror.Lost(w.Folded().Seq))
		}
		return true
	}
}

// fromReturned is fromCopy after another EKCO has continued the action for a while. If that EKCO finished the
// action, its journal stays.
func fromReturned(thirds int) func(Stage, *World, []*memory.Store) bool {
	return func(s Stage, w *World, copies []*memory.Store) bool {
		if !fromMirror(func(*mirror.Content) {})(s, w, nil) {
			return false
		}
		s.liveMirrored(w, secondJournal, 2+3*thirds)
		if w.Ended() {
			return true
		}
		w.Store = copies[len(copies)*thirds/3]
		content, _ := s.loadMirror(w, firstJournal)
		w.adopt(content, firstJournal)
		return true
	}
}

// loadMirror reads the mirror for the EKCO of that journal, if there is one.
func (s Stage) loadMirror(w *World, journalID string) (content mirror.Content, found bool) {
	w.T.Helper()
	m, stop := s.startMirror(w, journalID)
	defer stop()
	return s.load(w, m)
}

func (Stage) load(w *World, m *mirror.Mirror) (content mirror.Content, found bool) {
	w.T.Helper()
	content, err := m.Load(w.T.Context())
	if err != nil && !errors.Is(err, kube.ErrNotFound) {
		w.T.Fatal(err)
	}
	return content, err == nil
}

// adopt makes the journal continue the actions in the mirror, and returns the number of appended events.
func (w *World) adopt(content mirror.Content, journalID string, options ...mirror.AdoptOption) int {
	w.T.Helper()
	drafts, err := mirror.Adopt(content, w.Folded().OpenActions(), journalID, kubesim.ClusterUID, options...)
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := w.Store.Append(w.T.Context(), drafts...); err != nil {
		w.T.Fatal(err)
	}
	return len(drafts)
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
