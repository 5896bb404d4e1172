package purge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// sayings are what steps said that they wait for.
type sayings struct {
	mu   sync.Mutex
	said []string
	last actions.Progress
}

// foreign reports whether what was said last is in the hands of others.
func (s *sayings) foreign() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.NeedsOthers
}

func (s *sayings) hear(_, step string, now actions.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said, s.last = append(s.said, step+": "+now.Missing), now
}

func (s *sayings) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

// watched runs the purge and keeps what its steps wait for.
func (w *world) watched(said *sayings) actions.Config {
	cfg := w.cfg()
	cfg.Watcher = said.hear
	return cfg
}

func TestWhatHoldsANodeIsNamedWithinFiveSecondsWithTheCommandThatLooksAtIt(t *testing.T) {
	for want, finalizers := range map[string][]string{
		"delete-node: waits for finalizer backup.example.com/slow on node w1; it goes on when the finalizer is removed: by its program, or with: kubectl patch node w1 --type merge -p '{\"metadata\":{\"finalizers\":null}}'": {"backup.example.com/slow"},
		"delete-node: waits for finalizers a/b, c/d on node w1; it goes on when the finalizers are removed: by their programs, or with: kubectl patch node w1 --type merge -p '{\"metadata\":{\"finalizers\":null}}'":          {"a/b", "c/d"},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				purged(w, journal.ActionRequested{Manual: true})
				w.Cluster.Finalize("w1", finalizers...)
				var heard sayings
				r := w.Start(w.watched(&heard))
				w.Pass(5 * time.Second)
				if said := heard.all(); !slices.Contains(said, want) || !heard.foreign() {
					t.Errorf("after 5 s it was said: %q, in the hands of others: %t", said, heard.foreign())
				}
				w.Cluster.Finalize("w1")
				r.End()
				if w.NodeExists() || w.LastLine() != "ended done" {
					t.Errorf("without a finalizer the action %s", w.LastLine())
				}
			})
		})
	}
}

// deaf is an API that acknowledges the deletion of a Node that stays.
type deaf struct {
	kube.API
	deleting   bool
	finalizers []string
}

func (deaf) DeleteNode(context.Context, string, string) error { return nil }

func (d deaf) Node(ctx context.Context, name string) (kube.Node, error) {
	node, err := d.API.Node(ctx, name)
	node.Deleting, node.Finalizers = d.deleting, d.finalizers
	return node, err
}

// TestANodeThatStaysIsInTheHandsOfOthersOnlyWhereAFinalizerHoldsIt: it may have one that nobody
// has been asked for yet.
func TestANodeThatStaysIsInTheHandsOfOthersOnlyWhereAFinalizerHoldsIt(t *testing.T) {
	for _, test := range []struct {
		deleting   bool
		finalizers []string
		foreign    bool
	}{
		{false, nil, false}, {true, nil, false}, {false, []string{"a/b"}, false}, {true, []string{"a/b"}, true},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				purged(w, journal.ActionRequested{Manual: true})
				var heard sayings
				cfg := w.watched(&heard)
				for i := range cfg.Kinds {
					cfg.Kinds[i].Definition = purge.New(deaf{w.Cluster, test.deleting, test.finalizers})
				}
				r := w.Start(cfg)
				w.Pass(5 * time.Second)
				if heard.foreign() != test.foreign || len(heard.all()) == 0 {
					t.Errorf("it was said %q, in the hands of others: %t", heard.all(), heard.foreign())
				}
				r.Halt()
			})
		})
	}
}

func TestAnAPIServerThatThinksLongAboutADeletionIsSaidToWaitForAWebhook(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{Manual: true})
		var heard sayings
		cfg := w.watched(&heard)
		for i := range cfg.Kinds {
			cfg.Kinds[i].Definition = purge.New(sluggish{w.Cluster, 8 * time.Second})
		}
		r := w.Start(cfg)
		w.Pass(2 * time.Second)
		if said := heard.all(); len(said) > 0 {
			t.Errorf("after 2 s it was said: %q", said)
		}
		w.Pass(3 * time.Second)
		if said := heard.all(); len(said) != 1 || !strings.Contains(said[0], "has not answered the deletion of node w1 for 3s; a webhook may hold it: kubectl get validatingwebhookconfigurations") || !heard.foreign() {
			t.Errorf("after 5 s it was said: %q, in the hands of others: %t", said, heard.foreign())
		}
		r.End()
		if said := heard.all(); len(said) != 1 {
			t.Errorf("at the end it was said: %q", said)
		}
	})
}

func TestAWebhookThatRefusesIsNamedWithTheCommandThatLooksAtIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		purged(w, journal.ActionRequested{Manual: true})
		cfg := w.cfg()
		for i := range cfg.Kinds {
			cfg.Kinds[i].Definition = purge.New(refusing{w.Cluster, errors.New(`admission webhook "guard.example.com" denied the request: nodes stay`)})
		}
		r := w.Start(cfg)
		w.Pass(time.Second)
		if record := w.Record(); !strings.Contains(record.Steps["delete-node"].LastError, `"guard.example.com" denied the request: nodes stay; look at it: kubectl get validatingwebhookconfigurations`) {
			t.Errorf("it failed with %q", record.Steps["delete-node"].LastError)
		}
		r.Halt()
	})
}

// unasked is a request about a node that is ready, by somebody who could not be asked.
var unasked = journal.ActionRequested{Manual: true, Input: journal.PurgeInput{Live: true, Unasked: true}}

func TestAPurgeThatNobodyWasAskedAboutLeavesTenSecondsForACancel(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		w.requestPurge(node, unasked)
		var heard sayings
		r := w.Start(w.watched(&heard))
		w.Pass(9 * time.Second)
		if !w.NodeExists() || len(w.Cluster.Effects()) > 0 {
			t.Fatalf("after 9 s it did %v", w.Cluster.Effects())
		}
		if said := heard.all(); len(said) == 0 || !strings.Contains(said[0], "it begins at ") {
			t.Errorf("it was said: %q", said)
		}
		if took := r.End(); took > 4*time.Second || w.NodeExists() {
			t.Errorf("after 9 s it took %s more; the node exists: %v", took, w.NodeExists())
		}
	})
}

func TestACancelEndsTheTimeThatIsLeftForIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		w.requestPurge(node, unasked)
		r := w.Start(w.cfg())
		w.Pass(3 * time.Second)
		w.Cancel(r)
		if took := r.End(); took > time.Second || !w.NodeExists() || len(w.Cluster.Effects()) > 0 {
			t.Errorf("it ended after %s and did %v", took, w.Cluster.Effects())
		}
		if want := "ended cancelled changed my mind"; w.LastLine() != want {
			t.Errorf("it %s, want %s", w.LastLine(), want)
		}
	})
}

func TestThatTimeIsOverAfterARestartIfItWasBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		w.requestPurge(node, unasked)
		r := w.Start(w.cfg())
		w.Pass(3 * time.Second)
		r.Halt()
		w.Pass(time.Minute)
		if took := w.Start(w.cfg()).End(); took > time.Second || w.NodeExists() {
			t.Errorf("it took %s more", took)
		}
	})
}

func TestAClockSetBackMakesNobodyWaitLongerForACancel(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const ahead = time.Hour
		w.Store = memory.New(memory.Clock(func() time.Time { return time.Now().Add(ahead) }))
		node := w.Cluster.AddNode("w1", journal.RoleWorker)
		w.requestPurge(node, unasked)
		if took := w.Start(w.cfg()).End(); took > 15*time.Second || w.NodeExists() {
			t.Errorf("it took %s; the node exists: %v", took, w.NodeExists())
		}
	})
}

func TestEveryStepOfAPurgeThatNobodyWasAskedAboutComesAfterThatTime(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.Cluster.ReturnNode("w1")
		s.ask(unasked)
		plan, _, err := actions.NewRunner(s.cfg()).Explain(t.Context(), s.Record())
		if err != nil {
			t.Fatal(err)
		}
		for i, step := range plan.Steps {
			if first := step.ID == purge.WaitForCancel; first != (i == 0) || first != (len(step.After) == 0) {
				t.Errorf("step %d, %s, comes after %v", i, step.ID, step.After)
			}
		}
	})
}
