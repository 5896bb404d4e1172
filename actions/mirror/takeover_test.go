package mirror_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// operator is an EKCO that merges what it takes over.
type operator struct {
	*running
	mu   sync.Mutex
	open []journal.ActionRecord
	took []string
	fail error
}

func startOperator(t *testing.T, cluster *kubesim.Cluster, journalID string) *operator {
	o := &operator{}
	o.running = run(t, cluster, journalID, mirror.OnTakeover(func(_ context.Context, other mirror.Content) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.fail != nil {
			return o.fail
		}
		o.took = append(o.took, other.JournalID)
		for _, action := range other.Actions {
			if !slices.ContainsFunc(o.open, func(r journal.ActionRecord) bool { return r.ID == action.ID }) {
				o.open = append(o.open, action)
			}
		}
		o.Update(slices.Clone(o.open), "c1", journal.Carried{})
		return nil
	}))
	return o
}

// has makes an action open, or moves it on.
func (o *operator) has(id string, seq uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = slices.DeleteFunc(o.open, func(r journal.ActionRecord) bool { return r.ID == id })
	o.open = append(o.open, open(id, seq))
	o.Update(slices.Clone(o.open), "c1", journal.Carried{})
}

func (o *operator) breaks(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = err
}

// visitor is an EKCO that ran for a moment, beside the one that still runs.
func visitor(t *testing.T, cluster *kubesim.Cluster) {
	t.Helper()
	v := run(t, cluster, "visitor")
	if _, err := v.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.Update([]journal.ActionRecord{open("theirs", 9)}, "c1", journal.Carried{})
	synctest.Wait()
}

func TestARunningOperatorTakesOverAMirrorWhoseWriterIsQuiet(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		o := startOperator(t, cluster, "own")
		o.has("ours", 1)
		synctest.Wait()
		visitor(t, cluster)
		o.has("ours", 2)
		if err := o.Ready(t.Context(), "a", "purge", time.Second); !errors.Is(err, mirror.ErrOtherJournal) || !strings.Contains(err.Error(), `journal "visitor"`) {
			t.Errorf("beside another EKCO an irreversible step may start: %v", err)
		}
		letPass(mirror.Quiet / 2)
		if got := content(t, cluster).JournalID; got != "visitor" {
			t.Errorf("the mirror is of %s already", got)
		}
		letPass(2 * mirror.Quiet)
		if got := content(t, cluster); got.JournalID != "own" || ids(got.Actions) != "ours@2 theirs@9" {
			t.Errorf("the mirror is of %s and holds %q, want what both had open", got.JournalID, ids(got.Actions))
		}
		if err := o.Ready(t.Context(), "a", "purge", time.Second); err != nil {
			t.Errorf("after the takeover an irreversible step may not start: %v", err)
		}
	})
}

func TestAMirrorWhoseWriterIsAliveIsNotTakenOver(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		o := startOperator(t, cluster, "own")
		v := run(t, cluster, "visitor")
		for i := range 20 {
			v.Update([]journal.ActionRecord{open("theirs", uint64(i+1))}, "c1", journal.Carried{})
			synctest.Wait()
			o.has("ours", uint64(i+1))
			letPass(mirror.Quiet / 2)
			if err := o.Ready(t.Context(), "a", "purge", time.Second); !errors.Is(err, mirror.ErrOtherJournal) {
				t.Fatalf("turn %d: an irreversible step may start beside another EKCO: %v", i, err)
			}
		}
		if len(o.took) != 0 || content(t, cluster).JournalID != "visitor" {
			t.Errorf("took over %q", o.took)
		}
	})
}

func TestATakeoverThatCannotBeMergedLeavesTheMirrorAndIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		o := startOperator(t, cluster, "own")
		o.has("ours", 1)
		synctest.Wait()
		visitor(t, cluster)
		o.breaks(journal.ErrUnwritable)
		o.has("ours", 2)
		letPass(time.Hour)
		if err := o.Sync(t.Context()); !errors.Is(err, journal.ErrUnwritable) || !errors.Is(err, mirror.ErrOtherJournal) {
			t.Errorf("Sync returns %v", err)
		}
		if got := content(t, cluster).JournalID; got != "visitor" {
			t.Errorf("the mirror is of %s although nothing was merged", got)
		}
		o.breaks(nil)
		letPass(5 * time.Minute)
		if got := content(t, cluster); got.JournalID != "own" || ids(got.Actions) != "ours@2 theirs@9" {
			t.Errorf("the mirror is of %s and holds %q", got.JournalID, ids(got.Actions))
		}
	})
}

func TestAMirrorOfAnUnknownFormatIsNeverTakenOver(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		o := startOperator(t, cluster, "own")
		o.has("ours", 1)
		synctest.Wait()
		cluster.SetMirror([]byte(`{"format":4,"journal_id":"j9","actions":[]}`))
		o.has("ours", 2)
		letPass(time.Hour)
		if err := o.Sync(t.Context()); !errors.Is(err, mirror.ErrOtherFormat) || len(o.took) != 0 {
			t.Errorf("Sync returns %v, took over %q", err, o.took)
		}
	})
}

func TestAMirrorThatCannotBeWrittenHoldsIrreversibleStepsForABoundedTime(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		const patience = 10 * time.Minute
		cluster.Forbid(kubesim.UpdateConfigMaps)
		m := run(t, cluster, "j1")
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		synctest.Wait()
		if err := m.Ready(t.Context(), "a", "purge", patience); !errors.Is(err, kube.ErrForbidden) || !strings.Contains(err.Error(), "10m0s longer") {
			t.Errorf("at first: %v", err)
		}
		letPass(patience - time.Second)
		if err := m.Ready(t.Context(), "a", "purge", patience); !errors.Is(err, kube.ErrForbidden) {
			t.Errorf("before the end of patience: %v", err)
		}
		letPass(time.Second)
		if err := m.Ready(t.Context(), "a", "purge", patience); err != nil {
			t.Errorf("after the end of patience: %v", err)
		}
		cluster.Allow(kubesim.UpdateConfigMaps)
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Forbid(kubesim.UpdateConfigMaps)
		m.Update([]journal.ActionRecord{open("a", 2)}, "c1", journal.Carried{})
		if err := m.Ready(t.Context(), "a", "purge", patience); !errors.Is(err, kube.ErrForbidden) {
			t.Errorf("patience does not begin anew: %v", err)
		}
	})
}

func TestAMirrorThatIsNotThisJournalsToReplaceHoldsIrreversibleStepsForEver(t *testing.T) {
	const patience = 10 * time.Minute
	outdated := mirror.Judge(func(context.Context, mirror.Content) error { return mirror.ErrOutdated })
	for name, test := range map[string]struct {
		writer  string
		options []mirror.Option
		want    error
	}{
		"it is another's":          {"j2", nil, mirror.ErrOtherJournal},
		"it knows of newer events": {"j1", []mirror.Option{outdated}, mirror.ErrOutdated},
		"and now nobody answers":   {"j2", nil, mirror.ErrOtherJournal},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
				writer := run(t, cluster, test.writer)
				writer.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
				letPass(time.Second)
				m := run(t, cluster, "j1", test.options...)
				m.Update([]journal.ActionRecord{open("b", 2)}, "c1", journal.Carried{})
				letPass(2 * patience)
				if strings.HasPrefix(name, "and now") {
					cluster.SetLatency(time.Minute)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := m.Ready(ctx, "a", "purge", patience); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				letPass(time.Hour)
			})
		})
	}
}
