package mirror_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions/mirror"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// stormy has a mirror in parts written, and returns their names.
func stormy(t *testing.T, m *running, cluster *kubesim.Cluster, seq uint64) []string {
	t.Helper()
	m.Update(storm(30, seq), "c1", journal.Carried{})
	if err := m.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(cluster.Parts()))
}

func load(t *testing.T, cluster kube.API) (mirror.Content, error) {
	t.Helper()
	return mirror.New(cluster, "reader", slog.New(slog.DiscardHandler)).Load(t.Context())
}

func TestARoundWritesOnlyTheConfigMapsThatChanged(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		before := stormy(t, m, cluster, 1)
		wrote := cluster.Count("write-mirror-part")
		changed := storm(30, 1)
		changed[7].LastSeq = 2
		m.Update(changed, "c1", journal.Carried{})
		if err := m.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		after := slices.Sorted(maps.Keys(cluster.Parts()))
		same := slices.DeleteFunc(slices.Clone(after), func(name string) bool { return !slices.Contains(before, name) })
		if n := cluster.Count("write-mirror-part") - wrote; n != 1 || len(after) != len(before) || len(same) != len(before)-1 {
			t.Errorf("%d parts were written; before %q, after %q", n, before, after)
		}
		if got := content(t, cluster); len(got.Actions) != 30 {
			t.Errorf("it holds %d actions", len(got.Actions))
		}
	})
}

// halting is an API where the index, or the parts, cannot be written any more.
type halting struct {
	kube.API
	index, parts bool
}

func (h *halting) WriteMirror(ctx context.Context, content []byte, version string) (string, error) {
	if h.index {
		return "", kube.ErrUnavailable
	}
	return h.API.WriteMirror(ctx, content, version)
}

func (h *halting) WriteMirrorPart(ctx context.Context, name string, content []byte) error {
	if h.parts {
		return kube.ErrUnavailable
	}
	return h.API.WriteMirrorPart(ctx, name, content)
}

func TestHalfAWriteIsNotRead(t *testing.T) {
	t.Run("without its index", func(t *testing.T) { testHalfAWrite(t, halting{index: true}) })
	t.Run("without its parts", func(t *testing.T) { testHalfAWrite(t, halting{parts: true}) })
}

func testHalfAWrite(t *testing.T, half halting) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		api := &halting{API: cluster}
		ctx, die := context.WithCancel(t.Context())
		m := mirror.New(api, "j1", slog.New(slog.DiscardHandler))
		go m.Run(ctx)
		m.Update(storm(30, 1), "c1", journal.Carried{})
		if err := m.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		api.index, api.parts = half.index, half.parts
		m.Update(storm(30, 2), "c1", journal.Carried{})
		letPass(time.Second)
		die()
		synctest.Wait()
		got, err := load(t, cluster)
		if err != nil || strings.Count(ids(got.Actions)+" ", "@1 ") != 30 {
			t.Fatalf("it holds %q, %v; want what the last whole write held", ids(got.Actions), err)
		}
		next := run(t, cluster, "j1")
		if _, err := next.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		stormy(t, next, cluster, 3)
		letPass(time.Second)
		if named, there := len(content(t, cluster).Parts), len(cluster.Parts()); named != there {
			t.Errorf("%d parts are there, %d are named: what the dead EKCO wrote stays", there, named)
		}
	})
}

func TestAPartThatIsNotWhatTheMirrorNamesIsMissing(t *testing.T) {
	for name, harm := range map[string]func(part []byte) []byte{
		"removed":   func([]byte) []byte { return nil },
		"cut off":   func(part []byte) []byte { return part[:len(part)-1] },
		"emptied":   func([]byte) []byte { return []byte{} },
		"exchanged": func(part []byte) []byte { return bytes.Replace(part, []byte("purge-node"), []byte("clear-node"), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
				ctx, die := context.WithCancel(t.Context())
				m := mirror.New(cluster, "j1", slog.New(slog.DiscardHandler))
				go m.Run(ctx)
				m.Update(storm(30, 1), "c1", journal.Carried{Pauses: map[string]journal.Pause{"": {Reason: "r"}}})
				if err := m.Sync(ctx); err != nil {
					t.Fatal(err)
				}
				die()
				synctest.Wait()
				parts := cluster.Parts()
				harmed := slices.Sorted(maps.Keys(parts))[1]
				cluster.SetPart(harmed, harm(parts[harmed]))

				got, err := load(t, cluster)
				if !errors.Is(err, mirror.ErrIncomplete) || !strings.Contains(err.Error(), harmed) || len(got.Actions) >= 30 || len(got.Pauses) != 1 {
					t.Errorf("%d actions, %d pauses, %v", len(got.Actions), len(got.Pauses), err)
				}
				if len(got.Actions)+len(got.LeftOut) != 30 {
					t.Errorf("%d actions, and %d are named as left out, of 30", len(got.Actions), len(got.LeftOut))
				}
				before, _, _ := cluster.ReadMirror(t.Context())
				other := startOperator(t, cluster, "j2")
				other.has("ours", 1)
				letPass(time.Hour)
				if err := other.Ready(t.Context(), "ours", "purge", time.Minute); !errors.Is(err, mirror.ErrIncomplete) || mirror.Key(err) != "incomplete" {
					t.Errorf("beside an incomplete mirror: %v", err)
				}
				if after, _, _ := cluster.ReadMirror(t.Context()); !bytes.Equal(before, after) || len(other.took) != 0 {
					t.Error("the incomplete mirror of another journal was replaced")
				}
				own := run(t, cluster, "j1") // has what is missing
				stormy(t, own, cluster, 2)
				if got := content(t, cluster); len(got.Actions) != 30 {
					t.Errorf("written again, it holds %d actions", len(got.Actions))
				}
			})
		})
	}
}

func TestWhatSomebodyRemovedIsWrittenAgainWithoutAChange(t *testing.T) {
	for name, remove := range map[string]func(cluster *kubesim.Cluster, part string){
		"a part":    func(cluster *kubesim.Cluster, part string) { cluster.SetPart(part, nil) },
		"a change":  func(cluster *kubesim.Cluster, part string) { cluster.SetPart(part, []byte("[]")) },
		"the index": func(cluster *kubesim.Cluster, _ string) { cluster.SetMirror(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
				m := run(t, cluster, "j1")
				part := stormy(t, m, cluster, 1)[0]
				remove(cluster, part)
				letPass(2 * time.Minute)
				if got := content(t, cluster); len(got.Actions) != 30 || len(got.Parts) != len(cluster.Parts()) {
					t.Errorf("it holds %d actions in %d parts, of %d", len(got.Actions), len(got.Parts), len(cluster.Parts()))
				}
			})
		})
	}
}

// stalling is an API whose call before a deletion takes as long as a test wants.
type stalling struct {
	kube.API
	stalls bool
	resume chan struct{}
}

func (s *stalling) DeleteMirrorPart(ctx context.Context, name string) error {
	if s.stalls {
		<-s.resume
	}
	return s.API.DeleteMirrorPart(ctx, name)
}

func TestAStalledFormerOwnerDeletesNoPartOfTheNewOne(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		api := &stalling{API: cluster, resume: make(chan struct{})}
		ctx, die := context.WithCancel(t.Context())
		former := mirror.New(api, "j1", slog.New(slog.DiscardHandler))
		go former.Run(ctx)
		former.Update(storm(30, 1), "c1", journal.Carried{})
		if err := former.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		api.stalls = true
		former.Update(storm(30, 2), "c1", journal.Carried{}) // it stalls where it deletes the parts of the first round
		synctest.Wait()

		// The new owner has the same journal, as a copy, and the same content.
		next := run(t, cluster, "j1")
		if _, err := next.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		stormy(t, next, cluster, 1)
		api.stalls = false
		close(api.resume)
		former.Update(storm(30, 3), "c1", journal.Carried{})
		letPass(time.Second)
		die()
		synctest.Wait()
		if _, err := load(t, cluster); err != nil {
			t.Error(err)
		}
	})
}

// slow is an API where the list of the parts takes longer than a whole round of writes.
type slow struct{ kube.API }

func (s slow) MirrorParts(ctx context.Context) (map[string][]byte, error) {
	<-time.After(200 * time.Millisecond)
	return s.API.MirrorParts(ctx)
}

// undeleting is an API where parts cannot be deleted for a while.
type undeleting struct {
	kube.API
	refuses bool
}

func (u *undeleting) DeleteMirrorPart(ctx context.Context, name string) error {
	if u.refuses {
		return kube.ErrUnavailable
	}
	return u.API.DeleteMirrorPart(ctx, name)
}

func TestAPartThatIsNamedAgainIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		api := &undeleting{API: cluster, refuses: true}
		m := mirror.New(api, "j1", slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		go m.Run(ctx)
		for _, seq := range []uint64{1, 2, 1} { // as when an action was requested, and has ended
			m.Update(storm(30, seq), "c1", journal.Carried{})
			if err := m.Sync(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			api.refuses = seq == 1
		}
		got, err := load(t, cluster)
		if err != nil || len(got.Actions) != 30 || len(got.Parts) != len(cluster.Parts()) {
			t.Errorf("it holds %d actions in %d parts, of %d: %v", len(got.Actions), len(got.Parts), len(cluster.Parts()), err)
		}
		stop()
		synctest.Wait()
	})
}

func TestAReaderDuringWritesReadsAWholeMirror(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		cluster.SetLatency(10 * time.Millisecond)
		m := run(t, cluster, "j1")
		stormy(t, m, cluster, 1)
		for seq := range uint64(20) {
			m.Update(storm(30, seq+2), "c1", journal.Carried{})
			if got, err := load(t, slow{cluster}); err != nil || len(got.Actions) != 30 {
				t.Fatalf("%d actions, %v", len(got.Actions), err)
			}
			letPass(10 * time.Second)
		}
	})
}

func TestATakeoverRemovesThePartsOfTheOtherMirror(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		o := startOperator(t, cluster, "own")
		o.has("ours", 1)
		synctest.Wait()
		visitor := run(t, cluster, "visitor")
		if _, err := visitor.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		stormy(t, visitor, cluster, 9)
		o.has("ours", 2)
		letPass(10 * mirror.Quiet) // the pauses between its tries are up to two minutes, give or take
		got := content(t, cluster)
		if got.JournalID != "own" || len(got.Actions) != 31 || len(got.Parts) != len(cluster.Parts()) {
			t.Errorf("the mirror is of %s, with %d actions in %d parts, of %d", got.JournalID, len(got.Actions), len(got.Parts), len(cluster.Parts()))
		}
	})
}

// An EKCO that knows of no pauses would act against them.
func TestAnOlderEKCOLeavesAMirrorWithAPauseAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{Pauses: map[string]journal.Pause{"": {Reason: "r"}}})
		letPass(time.Minute)
		if got := content(t, cluster).Format; got != mirror.Format {
			t.Errorf("with a pause the mirror has format %d, want %d", got, mirror.Format)
		}
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{Pauses: map[string]journal.Pause{}})
		letPass(time.Minute)
		if got := content(t, cluster).Format; got >= mirror.Format {
			t.Errorf("without a pause the mirror has format %d, which an older EKCO does not read", got)
		}
	})
}

func TestInAStormThereAreFewRoundsAndTheMirrorIsHardlyBehind(t *testing.T) {
	inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
		m := run(t, cluster, "j1")
		letPass(time.Hour)
		m.Update([]journal.ActionRecord{open("a", 1)}, "c1", journal.Carried{})
		letPass(time.Second)
		if got := ids(content(t, cluster).Actions); got != "a@1" {
			t.Errorf("a second after the first change the mirror holds %q", got)
		}
		var rounds []int
		for i := range uint64(600) {
			m.Update([]journal.ActionRecord{open("a", i+2)}, "c1", journal.Carried{})
			letPass(500 * time.Millisecond)
			if held := content(t, cluster).Actions[0].LastSeq; i+2-held > 10 {
				t.Fatalf("the mirror holds event %d of %d: it is more than 5 s behind", held, i+2)
			}
			if rounds = append(rounds, cluster.Count("write-mirror")); i >= 120 && rounds[i]-rounds[i-120] > 20 {
				t.Fatalf("%d rounds in a minute", rounds[i]-rounds[i-120])
			}
		}
	})
}

// late is an API where it takes long to write a part.
type late struct{ kube.API }

func (l late) WriteMirrorPart(ctx context.Context, name string, content []byte) error {
	select {
	case <-time.After(1500 * time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	return l.API.WriteMirrorPart(ctx, name, content)
}

// TestFailedRoundsLeaveNoPartsBehind: etcd has a limited size.
func TestFailedRoundsLeaveNoPartsBehind(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for name, c := range map[string]struct {
		lives func(t *testing.T, cluster *kubesim.Cluster)
		most  int
	}{
		"the index cannot be written": {func(t *testing.T, cluster *kubesim.Cluster) {
			m := mirror.New(&halting{API: cluster, index: true}, "j1", quiet)
			go m.Run(t.Context())
			m.Update(storm(30, 1), "c1", journal.Carried{})
			letPass(30 * time.Minute)
		}, 8},
		"another EKCO lives": {func(t *testing.T, cluster *kubesim.Cluster) {
			held := mirror.New(cluster, "a", quiet)
			if _, err := held.Load(t.Context()); !errors.Is(err, kube.ErrNotFound) {
				t.Fatal(err)
			}
			lives := run(t, cluster, "b")
			stormy(t, lives, cluster, 1)
			go held.Run(t.Context())
			held.Update(storm(30, 1), "c1", journal.Carried{})
			for i := range uint64(30) {
				letPass(time.Minute)
				lives.Update(storm(30, i+2), "c1", journal.Carried{})
			}
		}, 16},
		"a round takes longer than its timeout": {func(t *testing.T, cluster *kubesim.Cluster) {
			m := mirror.New(late{cluster}, "j1", quiet)
			go m.Run(t.Context())
			m.Update(storm(500, 1), "c1", journal.Carried{})
			letPass(10 * time.Minute)
			if got := content(t, cluster); len(got.Actions) != 500 {
				t.Errorf("the mirror holds %d actions", len(got.Actions))
			}
		}, 128},
		"parts cannot be deleted": {func(t *testing.T, cluster *kubesim.Cluster) {
			cluster.Forbid("delete configmaps")
			m := run(t, cluster, "j1")
			change := func(i int) {
				actions := storm(30, 1)
				actions[i%30].LastSeq = uint64(i + 2)
				m.Update(actions, "c1", journal.Carried{})
				letPass(6 * time.Second)
			}
			for i := range 150 {
				change(i)
			}
			if err := m.Failing(); err == nil || !strings.Contains(err.Error(), "delete") {
				t.Errorf("it fails with %v", err)
			}
			cluster.Allow("delete configmaps")
			letPass(5 * time.Minute)
			if err, n := m.Failing(), len(cluster.Parts()); err != nil || n != len(content(t, cluster).Parts) {
				t.Errorf("once it may delete again: %v, and %d parts are there", err, n)
			}
		}, 150},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, cluster *kubesim.Cluster) {
				c.lives(t, cluster)
				if n := len(cluster.Parts()); n > c.most {
					t.Errorf("%d parts are there, at most %d were expected", n, c.most)
				}
			})
		})
	}
}
