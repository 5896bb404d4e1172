package bolt

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
	"github.com/replicatedhq/ekco/journal/crashpoints"
	"github.com/replicatedhq/ekco/journal/journaltest"
)

func init() { children["retain-forever"] = retainForever }

func requested(action string) journal.Draft {
	return journal.Draft{
		Type: journal.TypeActionRequested, Subject: journal.NodeSubject("node-1", "uid-1"), Action: action, Actor: "operator",
		Payload: journal.ActionRequested{Kind: journal.ActionPurgeNode, Reason: "<gone>"},
	}
}

func ended(action string) journal.Draft {
	return journal.Draft{
		Type: journal.TypeActionEnded, Subject: journal.NodeSubject("node-1", "uid-1"), Action: action, Actor: "operator",
		Payload: journal.ActionEnded{Outcome: journal.OutcomeDone},
	}
}

// agedJournal has an open action, finished ones and one that ended late; its
// clock moves an hour with each batch.
func agedJournal(t *testing.T, path string) (store *Store, now time.Time) {
	t.Helper()
	now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store = mustOpen(t, path, Options{Now: func() time.Time { return now }})
	bolttest.MustAppend(t, store, requested("open"), requested("late"))
	for i := range 30 {
		now = now.Add(time.Hour)
		bolttest.MustAppend(t, store, append(bolttest.ObservedMany(fmt.Sprint("node-", i%5), 100), requested(fmt.Sprint("done-", i)), ended(fmt.Sprint("done-", i)))...)
	}
	bolttest.MustAppend(t, store, ended("late"))
	snapshot := journal.Snapshot{Seq: 2900, Fold: "test", State: []byte("{}")}
	if err := store.SaveSnapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	return store, now
}

func TestRetentionMovesOldEventsOfFinishedActions(t *testing.T) {
	path := bolttest.NewPath(t)
	store, now := agedJournal(t, path)
	all := bolttest.MustRead(t, store, journal.Query{})
	keep := func(event journal.Event) bool { return event.Subject.Name == "node-4" }
	before := now.Add(-5 * time.Hour)
	exported, err := store.Retain(t.Context(), RetainOptions{Before: before, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	left := bolttest.MustRead(t, store, journal.Query{Before: uint64(len(all)) + 1})
	var want []journal.Event
	for _, event := range all {
		old := event.Time.Before(before) && event.Seq <= 2900
		if !old || keep(event) || event.Action == "open" || event.Action == "late" || event.Type == journal.TypeJournalCreated {
			want = append(want, event)
		}
	}
	if !slices.EqualFunc(left, want, bolttest.SameRecord) {
		t.Errorf("%d events are left, want %d", len(left), len(want))
	}
	if got := int(exported.Events - exported.Kept); got != len(all)-len(left) || exported.Kept == 0 {
		t.Errorf("exported says %+v, %d events left", exported, len(all)-len(left))
	}
	checkExport(t, exported, all)
	journaltest.CheckQueries(t, store)
	stat, err := store.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(bolttest.MustRead(t, store, journal.Query{})); stat.Events != uint64(got) {
		t.Errorf("stat counts %d events, there are %d", stat.Events, got)
	}
	again, err := store.Retain(t.Context(), RetainOptions{Before: before, Keep: keep})
	if err != nil || again.Events != 0 {
		t.Errorf("a second retention moved %+v, %v", again, err)
	}
	bolttest.MustClose(t, store)
	if report := bolttest.MustVerify(t, path); report.Gaps == 0 {
		t.Error("the journal has no gaps")
	}
	journaltest.CheckQueries(t, mustOpen(t, path, inChild()))
}

// checkExport wants the whole range of events, for its owner's eyes only.
func checkExport(t *testing.T, exported journal.JournalExported, all []journal.Event) {
	t.Helper()
	info, err := os.Stat(exported.File)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != files.FileMode {
		t.Errorf("the export has mode %s", info.Mode())
	}
	var want []byte
	for _, event := range all[exported.FirstSeq-1 : exported.LastSeq] {
		want = append(append(want, event.Record()...), '\n')
	}
	file, err := os.Open(exported.File)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(zipped); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the export differs from the events: %v", err)
	}
}

func TestRetentionNeedsASnapshot(t *testing.T) {
	store := mustOpen(t, bolttest.NewPath(t), Options{})
	if _, err := store.Retain(t.Context(), RetainOptions{Before: time.Now().Add(time.Hour)}); !errors.Is(err, journal.ErrNoSnapshot) {
		t.Errorf("retention without a snapshot: %v", err)
	}
}

func TestImportPutsBackWhatRetentionMoved(t *testing.T) {
	path := bolttest.NewPath(t)
	store, now := agedJournal(t, path)
	all := bolttest.MustRead(t, store, journal.Query{})
	var files []string
	for _, age := range []time.Duration{20 * time.Hour, 5 * time.Hour} {
		exported, err := store.Retain(t.Context(), RetainOptions{Before: now.Add(-age)})
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, exported.File)
	}
	for _, file := range slices.Backward(files) {
		imported, err := store.Import(t.Context(), file, "/home/me/export.gz")
		if err != nil || imported.Events == 0 || imported.File != "/home/me/export.gz" {
			t.Fatalf("import of %s: %+v, %v", file, imported, err)
		}
	}
	if got := bolttest.MustRead(t, store, journal.Query{Before: uint64(len(all)) + 1}); !slices.EqualFunc(got, all, bolttest.SameRecord) {
		t.Errorf("after the import there are %d events, want %d", len(got), len(all))
	}
	if imported, err := store.Import(t.Context(), files[0], ""); err != nil || imported.Events != 0 {
		t.Errorf("a second import: %+v, %v", imported, err)
	}
	journaltest.CheckQueries(t, store)
	bolttest.MustClose(t, store)
	if report := bolttest.MustVerify(t, path); report.Gaps != 0 {
		t.Errorf("%d gaps are left", report.Gaps)
	}
}

func TestImportRefusesWhatDoesNotFit(t *testing.T) {
	store, now := agedJournal(t, bolttest.NewPath(t))
	exported, err := store.Retain(t.Context(), RetainOptions{Before: now.Add(-5 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	whole := readAllLines(t, exported.File)
	other := bolttest.MustAppend(t, mustOpen(t, bolttest.NewPath(t), Options{}), bolttest.ObservedMany("foreign", 3)...)
	before := bolttest.MustRead(t, store, journal.Query{})
	for name, content := range map[string][][]byte{
		"an export that ends early":      whole[:len(whole)-50],
		"an export that begins late":     whole[50:],
		"an export with a missing line":  slices.Delete(slices.Clone(whole), 60, 61),
		"an export with a changed event": changed(whole, 60),
		"an export with a changed end":   changed(whole, len(whole)-1),
		"events of another journal":      {other[1].Record(), other[2].Record()},
		"something else":                 {[]byte("hello")},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "export.ndjson")
			if err := os.WriteFile(file, append(bytes.Join(content, []byte("\n")), '\n'), files.FileMode); err != nil {
				t.Fatal(err)
			}
			_, err := store.Import(t.Context(), file, "")
			if !errors.Is(err, ErrNotOfThisJournal) && !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("import: %v", err)
			}
			if !slices.EqualFunc(bolttest.MustRead(t, store, journal.Query{}), before, bolttest.SameRecord) {
				t.Error("the refused import left something")
			}
		})
	}
}

func readAllLines(t *testing.T, file string) (all [][]byte) {
	t.Helper()
	for line, err := range lines(file) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

// changed alters one event and gives it the hash of its new content, as a forger
// would.
func changed(whole [][]byte, at int) [][]byte {
	forged := slices.Clone(whole)
	event, _ := journal.ParseRecord(whole[at])
	previous, _ := journal.RecordHash(whole[at-1])
	event.Actor = "somebody else"
	forged[at] = event.Seal(previous)
	return forged
}

func TestCompactionGivesSpaceBackAndKeepsEverything(t *testing.T) {
	path := bolttest.NewPath(t)
	store, now := agedJournal(t, path)
	if _, err := store.Retain(t.Context(), RetainOptions{Before: now}); err != nil {
		t.Fatal(err)
	}
	want := bolttest.MustRead(t, store, journal.Query{})
	before, after, err := store.Compact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after >= before/2 {
		t.Errorf("the file shrank from %d to %d bytes only", before, after)
	}
	if !slices.EqualFunc(bolttest.MustRead(t, store, journal.Query{}), want, bolttest.SameRecord) {
		t.Error("events differ after compaction")
	}
	bolttest.MustAppend(t, store, bolttest.Observed("after"))
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("after compaction the journal is not locked: %v", err)
	}
	bolttest.MustClose(t, store)
	bolttest.MustVerify(t, path)
}

// TestACompactionOfADamagedJournalLeavesItsFile damages the end that the journal notes of itself: bbolt copies
// that without a word.
func TestACompactionOfADamagedJournalLeavesItsFile(t *testing.T) {
	path := bolttest.NewPath(t)
	store, _ := agedJournal(t, path)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	err = store.submit(t.Context(), &write{exclusive: func() error {
		return store.db.Update(func(tx *bbolt.Tx) error {
			tables, err := layout.TablesOf(tx)
			if err != nil {
				return err
			}
			return tables.Meta.Put(layout.HeadKey, layout.Head{Seq: store.end.Seq + 1, Hash: store.end.Hash}.Encode())
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Compact(t.Context()); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("compaction: %v, want it refused as damaged", err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the journal's file was replaced: %v", err)
	}
}

// retainForever appends, snapshots, retains and compacts without end.
func retainForever(arguments []string) int {
	ctx := context.Background()
	store, err := Open(context.Background(), arguments[0], Options{})
	if err != nil {
		return report(err)
	}
	fmt.Println("open")
	for {
		events, err := store.Append(ctx, bolttest.ObservedMany("node", 700)...)
		if err != nil {
			return report(err)
		}
		last := events[len(events)-1].Seq
		fmt.Println(last)
		err = store.SaveSnapshot(ctx, journal.Snapshot{Seq: last, Fold: "test", State: []byte("{}")})
		if err != nil {
			return report(err)
		}
		if _, err := store.Retain(ctx, RetainOptions{Before: time.Now()}); err != nil {
			return report(err)
		}
		if _, _, err := store.Compact(ctx); err != nil {
			return report(err)
		}
	}
}

func TestNothingIsLostWhenRetentionOrCompactionIsKilled(t *testing.T) {
	path := bolttest.NewPath(t)
	random := rand.New(rand.NewPCG(5, 6))
	var acknowledged uint64
	for range crashpoints.Choose(t, 20) {
		child, output := startChild(t, "retain-forever", path)
		wanted := 1 + random.IntN(3)
		for batches := 1; ; batches++ {
			line, err := output.ReadString('\n')
			if err != nil {
				break // the child is dead
			}
			if batches == wanted { // from here on anywhere
				time.AfterFunc(time.Duration(random.IntN(30_000))*time.Microsecond, func() { _ = child.Process.Kill() })
			}
			if _, err := fmt.Sscan(line, &acknowledged); err != nil {
				t.Fatal(err)
			}
		}
		bolttest.MustVerify(t, path)
	}
	seen := make(map[uint64]string)
	note := func(event journal.Event) {
		record := string(event.Record())
		if other, ok := seen[event.Seq]; ok && other != record {
			t.Fatalf("event %d has two contents", event.Seq)
		}
		seen[event.Seq] = record
	}
	exports, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.ndjson.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range exports {
		for _, line := range readAllLines(t, file) {
			event, err := journal.ParseRecord(line)
			if err != nil {
				t.Fatal(err)
			}
			note(event)
		}
	}
	for _, event := range bolttest.MustRead(t, mustOpen(t, path, inChild()), journal.Query{}) {
		note(event)
	}
	for seq := uint64(1); seq <= acknowledged; seq++ {
		if seen[seq] == "" {
			t.Fatalf("event %d of %d is neither in the journal nor in an export", seq, acknowledged)
		}
	}
	if len(exports) == 0 || acknowledged == 0 {
		t.Errorf("nothing happened: %d exports, %d events", len(exports), acknowledged)
	}
}
