package journaltest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
)

func (s suite) snapshots(t *testing.T) {
	ctx := context.Background()
	store := s.open(t)
	if _, err := store.Snapshot(ctx); !errors.Is(err, journal.ErrNoSnapshot) {
		t.Fatalf("snapshot of a new journal: %v", err)
	}
	mustAppend(t, store, observedMany(10)...)
	for _, want := range []journal.Snapshot{
		{Seq: 5, Fold: "state/1", Time: time.Unix(10, 5).UTC(), State: bytes.Repeat([]byte("{}"), 50_000)},
		{Seq: 11, Fold: "state/2", Time: time.Unix(20, 0).UTC(), State: []byte{0, 1, 255}},
	} {
		if err := store.SaveSnapshot(ctx, want); err != nil {
			t.Fatal(err)
		}
		got, err := store.Snapshot(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("snapshot differs (-want +got):\n%s", diff)
		}
		stat, err := store.Stat(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if stat.SnapshotSeq != want.Seq {
			t.Errorf("stat says snapshot %d, want %d", stat.SnapshotSeq, want.Seq)
		}
	}
}

func (s suite) snapshotAhead(t *testing.T) {
	store := s.open(t)
	if err := store.SaveSnapshot(context.Background(), journal.Snapshot{Seq: 2, State: []byte("{}")}); err == nil {
		t.Error("a snapshot beyond the end was accepted")
	}
	if _, err := store.Snapshot(context.Background()); !errors.Is(err, journal.ErrNoSnapshot) {
		t.Errorf("a refused snapshot was kept: %v", err)
	}
}

func (s suite) clusters(t *testing.T) {
	ctx := context.Background()
	store := s.open(t)
	if err := store.BindCluster(ctx, ""); err == nil {
		t.Error("an empty cluster UID was accepted")
	}
	for range 2 {
		if err := store.BindCluster(ctx, "uid-one"); err != nil {
			t.Fatal(err)
		}
	}
	err := store.BindCluster(ctx, "uid-two")
	if !errors.Is(err, journal.ErrOtherCluster) {
		t.Fatalf("bind to another cluster: %v", err)
	}
	if !strings.Contains(err.Error(), "uid-one") || !strings.Contains(err.Error(), "uid-two") {
		t.Errorf("the message does not name both clusters: %v", err)
	}
	stat, err := store.Stat(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if stat.ClusterUID != "uid-one" {
		t.Errorf("the journal belongs to %q, want uid-one", stat.ClusterUID)
	}
}

func (s suite) stat(t *testing.T) {
	store := s.open(t)
	events := append(mustRead(t, store, journal.Query{}), mustAppend(t, store, observedMany(9)...)...)
	got, err := store.Stat(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if got.FirstSeq != 1 || got.LastSeq != 10 || got.Events != 10 || got.Format != journal.Format ||
		!got.FirstTime.Equal(events[0].Time) || !got.LastTime.Equal(events[9].Time) {
		t.Errorf("stat = %+v", got)
	}
}

func (s suite) closed(t *testing.T) {
	ctx := context.Background()
	store := s.open(t)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"append":   func() error { _, err := store.Append(ctx, observed("a")); return err },
		"read":     func() error { _, err := collect(store.Read(ctx, journal.Query{})); return err },
		"follow":   func() error { _, err := collect(store.Follow(ctx, 0)); return err },
		"snapshot": func() error { _, err := store.Snapshot(ctx); return err },
		"save":     func() error { return store.SaveSnapshot(ctx, journal.Snapshot{Seq: 1}) },
		"stat":     func() error { _, err := store.Stat(ctx); return err },
		"bind":     func() error { return store.BindCluster(ctx, "uid") },
		"close":    store.Close,
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s on a closed journal: %v", name, err)
		}
	}
}
