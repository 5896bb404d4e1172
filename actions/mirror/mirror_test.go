package mirror_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// running is a mirror whose Run is under way.
type running struct {
	*mirror.Mirror
	failures int
	log      strings.Builder
}

// run starts a mirror that ends with the test.
func run(t *testing.T, cluster *kubesim.Cluster, journalID string, options ...mirror.Option) *running {
	r := &running{}
	options = append(options, mirror.OnFailure(func(error) { r.failures++ }))
	r.Mirror = mirror.New(cluster, journalID, slog.New(slog.NewTextHandler(&r.log, nil)), options...)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-ended })
	return r
}

func inBubble(t *testing.T, test func(t *testing.T, cluster *kubesim.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, kubesim.New()) })
}

func letPass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func open(id string, seq uint64) journal.ActionRecord {
	return journal.ActionRecord{
		ID: id, Kind: journal.ActionPurgeNode, Subject: journal.NodeSubject("w1", "uid-w1"), LastSeq: seq,
		Request: journal.ActionRequested{Kind: journal.ActionPurgeNode},
	}
}

// content is what a fresh EKCO would load.
func content(t *testing.T, cluster *kubesim.Cluster) mirror.Content {
	t.Helper()
	loaded, err := mirror.New(cluster, "reader", slog.New(slog.DiscardHandler)).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func ids(records []journal.ActionRecord) string {
	var ids []string
	for _, r := range records {
		ids = append(ids, fmt.Sprintf("%s@%d", r.ID, r.LastSeq))
	}
	return strings.Join(ids, " ")
}

func TestTheOpenActionsAreWrittenOnEachChange(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		letPass(time.Hour)
		if _, err := m.Load(t.Context()); !errors.Is(err, kube.ErrNotFound) {
			t.Errorf("before the first update, Load returns %v", err)
		}
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		synctest.Wait()
		got := content(t, cluster)
		if got.Format != 1 || got.JournalID != "j1" || got.ClusterUID != "c1" || got.WrittenAt.IsZero() || ids(got.Actions) != "a@1" {
			t.Errorf("the mirror holds %+v", got)
		}
		m.Update([]journal.ActionRecord{open("a", 2), open("b", 3)}, "c1", journal.Carried{})
		synctest.Wait()
		if got := ids(content(t, cluster).Actions); got != "a@2 b@3" {
			t.Errorf("the mirror holds %q", got)
		}
		m.Update(nil, "c1", journal.Carried{})
		synctest.Wait()
		if got := content(t, cluster); len(got.Actions) != 0 {
			t.Errorf("the mirror holds %q", ids(got.Actions))
		}
	})
}

func TestAnUpdateThatChangesNothingIsNotWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		for range 10 {
			m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
			letPass(time.Hour)
		}
		if got := cluster.Count("write-mirror"); got != 1 {
			t.Errorf("%d writes", got)
		}
	})
}

func TestActionThatBecomesUnreadableIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		action := open("a", 1)
		m.Update([]journal.ActionRecord{action}, "c1", journal.Carried{})
		action.Unreadable = "event 2"
		m.Update([]journal.ActionRecord{action}, "c1", journal.Carried{})
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := content(t, cluster).Actions[0].Unreadable; got != action.Unreadable {
			t.Errorf("the mirror holds %q", got)
		}
	})
}

func TestUpdatesDuringAWriteAreCoalesced(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		cluster.SetLatency(time.Second)
		m := run(t, cluster, "j1")
		for i := range 100 {
			m.Update([]journal.ActionRecord{open("a", uint64(i+1))}, "c1", journal.Carried{})
			<-time.After(time.Millisecond)
		}
		letPass(time.Minute)
		cluster.SetLatency(0)
		if got := ids(content(t, cluster).Actions); got != "a@100" {
			t.Errorf("the mirror holds %q", got)
		}
		if got := cluster.Count("write-mirror"); got != 2 {
			t.Errorf("%d writes", got)
		}
	})
}

func TestSyncReturnsWhenWhatWasUpdatedIsWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		cluster.SetLatency(time.Second)
		m := run(t, cluster, "j1")
		if err := m.Sync(t.Context()); err != nil {
			t.Errorf("with nothing to write, Sync returns %v", err)
		}
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		<-time.After(time.Millisecond)
		m.Update([]journal.ActionRecord{open("a", 2)}, "c1", journal.Carried{})
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.SetLatency(0)
		if got := ids(content(t, cluster).Actions); got != "a@2" {
			t.Errorf("after Sync the mirror holds %q", got)
		}
	})
}

func TestSyncReturnsTheErrorOfAWriteAndTheMirrorGoesOnTrying(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		cluster.Outage(true)
		m := run(t, cluster, "j1")
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		if err := m.Sync(t.Context()); !errors.Is(err, kube.ErrUnavailable) {
			t.Errorf("Sync returns %v", err)
		}
		cluster.Outage(false)
		letPass(3 * time.Minute)
		if got := ids(content(t, cluster).Actions); got != "a@1" {
			t.Errorf("the mirror holds %q", got)
		}
	})
}

func TestSyncEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := mirror.New(cluster, "j1", slog.New(slog.DiscardHandler)) // nobody runs it
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := m.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Sync returns %v", err)
		}
	})
}

func TestAFailureIsCountedEachTimeAndSaidOncePerChange(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		cluster.Forbid(kubesim.UpdateConfigMaps)
		m := run(t, cluster, "j1")
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		letPass(time.Hour)
		if m.failures < 20 || m.failures > 60 {
			t.Errorf("%d tries in an hour, want one each 2m after the first few", m.failures)
		}
		if got := strings.Count(m.log.String(), "level=WARN"); got != 1 {
			t.Errorf("%d warnings:\n%s", got, m.log.String())
		}
		cluster.Allow(kubesim.UpdateConfigMaps)
		cluster.Outage(true)
		letPass(time.Hour)
		cluster.Outage(false)
		letPass(time.Hour)
		if got := strings.Count(m.log.String(), "level=WARN"); got != 2 {
			t.Errorf("%d warnings:\n%s", got, m.log.String())
		}
		if !strings.Contains(m.log.String(), "mirrored again") {
			t.Errorf("the recovery is not said:\n%s", m.log.String())
		}
	})
}

func TestAWriteWhoseAnswerWasLostDoesNotBlockTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		cluster.LoseAnswer("write-mirror")
		m := run(t, cluster, "j1")
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		letPass(time.Minute)
		m.Update([]journal.ActionRecord{open("a", 2)}, "c1", journal.Carried{})
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ids(content(t, cluster).Actions); got != "a@2" {
			t.Errorf("the mirror holds %q", got)
		}
	})
}

func TestTheMirrorOfAnotherJournalIsNotOverwrittenBeforeItWasLoaded(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		other := run(t, cluster, "other")
		other.Update([]journal.ActionRecord{open("theirs", 9)}, "c1", journal.Carried{})
		synctest.Wait()

		m := run(t, cluster, "j1")
		m.Update([]journal.ActionRecord{open("ours", 1)}, "c1", journal.Carried{})
		if err := m.Sync(t.Context()); !errors.Is(err, mirror.ErrOtherJournal) {
			t.Errorf("Sync returns %v", err)
		}
		if got := content(t, cluster); got.JournalID != "other" || ids(got.Actions) != "theirs@9" {
			t.Errorf("the mirror holds %+v", got)
		}
		loaded, err := m.Load(t.Context())
		if err != nil || ids(loaded.Actions) != "theirs@9" {
			t.Fatalf("loaded %+v, %v", loaded, err)
		}
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := content(t, cluster); got.JournalID != "j1" || ids(got.Actions) != "ours@1" {
			t.Errorf("the mirror holds %+v", got)
		}
		// The other one, should it still live, must notice and keep off.
		other.Update([]journal.ActionRecord{open("theirs", 10)}, "c1", journal.Carried{})
		if err := other.Sync(t.Context()); !errors.Is(err, mirror.ErrOtherJournal) {
			t.Errorf("the other's Sync returns %v", err)
		}
		if got := content(t, cluster); got.JournalID != "j1" {
			t.Errorf("the mirror is of %s", got.JournalID)
		}
	})
}

func TestALoadedMirrorMayBeReplacedEvenWhenTheFirstWriteFails(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		other := run(t, cluster, "other")
		other.Update([]journal.ActionRecord{open("theirs", 9)}, "c1", journal.Carried{})
		synctest.Wait()
		m := run(t, cluster, "j1")
		if _, err := m.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Outage(true)
		m.Update([]journal.ActionRecord{open("ours", 1)}, "c1", journal.Carried{})
		letPass(time.Minute)
		cluster.Outage(false)
		letPass(3 * time.Minute)
		if got := content(t, cluster).JournalID; got != "j1" {
			t.Errorf("the mirror is of %s", got)
		}
	})
}

func TestAMirrorThatWasEditedOrRemovedIsWrittenAgain(t *testing.T) {
	for name, edited := range map[string][]byte{"removed": nil, "emptied": {}, "garbage": []byte("not json")} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
				m := run(t, cluster, "j1")
				m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
				synctest.Wait()
				cluster.SetMirror(edited)
				m.Update([]journal.ActionRecord{open("a", 2)}, "c1", journal.Carried{})
				if err := m.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := ids(content(t, cluster).Actions); got != "a@2" {
					t.Errorf("the mirror holds %q", got)
				}
			})
		})
	}
}

func TestAMirrorOfAnUnknownFormatIsNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		cluster.SetMirror([]byte(`{"format":4,"journal_id":"j9","actions":[]}`))
		m := run(t, cluster, "j1")
		if loaded, err := m.Load(t.Context()); !errors.Is(err, mirror.ErrOtherFormat) || loaded.JournalID != "j9" {
			t.Errorf("loaded %+v, %v", loaded, err)
		}
	})
}

func TestAMirrorThatNobodyHasSaidAnythingToWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		m.Refresh()
		letPass(time.Hour)
		if got := cluster.Count("write-mirror"); got != 0 {
			t.Errorf("%d writes", got)
		}
	})
}

// TestTheMirrorNamesWhatItKnowsOfOtherJournals, and not its own journal, nor one of which it knows nothing.
func TestTheMirrorNamesWhatItKnowsOfOtherJournals(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		ends := map[string]journal.Position{}
		// Event 1 of each journal is its beginning.
		for i, id := range []string{"first", "second", "third", "first"} {
			store := memory.New()
			for range i + 1 {
				end(t, store, journal.OutcomeDone, id)
			}
			m := run(t, cluster, id, mirror.Journal(store))
			if _, err := m.Load(t.Context()); err != nil && !errors.Is(err, kube.ErrNotFound) {
				t.Fatal(err)
			}
			m.Update(nil, "c1", journal.Carried{Seq: uint64(i + 2), Pauses: map[string]journal.Pause{}})
			synctest.Wait()
			delete(ends, id)
			got := content(t, cluster)
			if len(got.Covered) != len(ends) || !maps.Equal(got.CoveredAt, ends) {
				t.Errorf("%s: it knows %v at %v, want %v", id, got.Covered, got.CoveredAt, ends)
			}
			for other, at := range ends {
				if got.Covered[other] != at.Seq {
					t.Errorf("%s: it knows event %d of %s, want %d", id, got.Covered[other], other, at.Seq)
				}
			}
			ends[id] = got.At
			next := mirror.New(cluster, id, slog.New(slog.DiscardHandler))
			if _, err := next.Load(t.Context()); err != nil || next.Covered() != got.At || got.At.Seq != uint64(i+2) {
				t.Errorf("%s: its journal must keep %+v, want %+v, %v", id, next.Covered(), got.At, err)
			}
		}
	})
}
