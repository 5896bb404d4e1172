package actions_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/clear"
	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/fsm"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// startMirror mirrors a journal until the function it returns is called.
func startMirror(w *world, id string) (*mirror.Mirror, func()) {
	m := mirror.New(w.cluster, id, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.Run(ctx)
	}()
	return m, func() { stop(); <-ended }
}

// mirroredStore tells the mirror what has become of the open actions, as the
// loop does after each append that it learns of.
type mirroredStore struct {
	mortalStore
	world  *world
	mirror *mirror.Mirror
}

func (s mirroredStore) Append(ctx context.Context, drafts ...journal.Draft) ([]journal.Event, error) {
	events, err := s.mortalStore.Append(ctx, drafts...)
	if err == nil {
		s.mirror.Update(s.world.folded().OpenActions(), kubesim.ClusterUID)
	}
	return events, err
}

// liveMirrored is one incarnation that mirrors what it does, and dies at a crash
// point.
func (w *world) liveMirrored(at int) {
	m, stop := startMirror(w, "first")
	defer stop()
	ctx, kill := context.WithTimeout(w.t.Context(), 24*time.Hour)
	defer kill()
	f := &fuse{at: at, kill: kill, lock: make(chan struct{}, 1)}
	api := mortalAPI{w.cluster, f}
	cfg := w.config([]actions.Definition{
		clear.New(api), purge.New(api, w.parts(f)...),
	})
	cfg.Store = mirroredStore{mortalStore{w.store, f}, w, m}
	cfg.Preflights[actions.Mirrored] = actions.PreflightFunc(func(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
		if err := m.Ready(ctx, "purge", time.Minute); err != nil {
			return actions.Hold(err.Error())
		}
		return actions.Pass()
	})
	// Whether a request is mirrored before its EKCO dies is chance.
	m.Update(w.folded().OpenActions(), kubesim.ClusterUID)
	if err := m.Sync(ctx); err != nil {
		w.t.Error(err)
	}
	_ = actions.NewRunner(cfg).Run(ctx, w.record(), nil) // dead or done
}

// moveElsewhere is an EKCO that starts on another node with an empty journal.
// It reports whether the mirror gave it the action.
func (w *world) moveElsewhere() bool {
	w.t.Helper()
	w.store = memory.New()
	m, stop := startMirror(w, "second")
	defer stop()
	content, err := m.Load(w.t.Context())
	if errors.Is(err, kube.ErrNotFound) {
		return false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	drafts, err := mirror.Adopt(content, fsm.NewState(fsmnode.Capability()).OpenActions(), "second", kubesim.ClusterUID)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.Append(w.t.Context(), drafts...); err != nil {
		w.t.Fatal(err)
	}
	return len(drafts) > 0
}

func TestAnActionKilledAtAnyPointIsFinishedElsewhereFromTheMirror(t *testing.T) {
	for name, s := range andCancelled(scenes()) {
		t.Run(name, func(t *testing.T) {
			want, points := undisturbed(t, s)
			for at := 1; at <= points; at++ {
				inBubble(t, func(t *testing.T, w *world) {
					s.set(w)
					w.liveMirrored(at)
					if !w.moveElsewhere() {
						t.Fatalf("killed at point %d of %d, it is not adopted", at, points)
					}
					w.runToEnd(w.config(productKinds(w)))
					if got := w.end(); got != want {
						t.Errorf("killed at point %d of %d, it ends elsewhere as %s, want %s; %q", at, points, got, want, w.story())
					}
				})
			}
		})
	}
}
