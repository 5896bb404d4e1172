package bolt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

// BenchmarkSingleAppend alternates a durable append with bbolt's own
// transaction of one put of the same size, so that both see the same disk.
func BenchmarkSingleAppend(b *testing.B) {
	store := mustOpen(b, bolttest.NewPath(b), Options{})
	draft := bolttest.Observed("node-1")
	size := len(bolttest.MustAppend(b, store, draft)[0].Record())
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "plain.db"), files.FileMode, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var plain, appended time.Duration
	for i := range b.N {
		begin := time.Now()
		if err := onePut(db, uint64(i), make([]byte, size)); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if _, err := store.Append(context.Background(), draft); err != nil {
			b.Fatal(err)
		}
		plain += middle.Sub(begin)
		appended += time.Since(middle)
	}
	b.ReportMetric(float64(appended.Nanoseconds())/float64(b.N), "ns/append")
	b.ReportMetric(float64(plain.Nanoseconds())/float64(b.N), "ns/bbolt-put")
	b.ReportMetric(float64(appended)/float64(plain), "x-bbolt-put")
}

func onePut(db *bbolt.DB, number uint64, value []byte) error {
	return db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte("plain"))
		if err != nil {
			return err
		}
		return bucket.Put(layout.Key(number), value)
	})
}

func BenchmarkBatchOf100(b *testing.B) {
	store := mustOpen(b, bolttest.NewPath(b), Options{})
	drafts := bolttest.ObservedMany("node-1", 100)
	for b.Loop() {
		if _, err := store.Append(context.Background(), drafts...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(100*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkSixteenWriters shows how concurrent callers share transactions.
func BenchmarkSixteenWriters(b *testing.B) {
	store := mustOpen(b, bolttest.NewPath(b), Options{})
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range b.N {
				if _, err := store.Append(context.Background(), bolttest.Observed("node-1")); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.ReportMetric(16*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// fixtures are journals that several benchmarks read.
var fixtures = struct {
	sync.Mutex
	paths map[int]string
}{paths: make(map[int]string)}

// fixture returns a closed journal of the given number of events over 1,000
// nodes, with a snapshot 100 events before its end. It is built once.
func fixture(b *testing.B, count int) string {
	b.Helper()
	fixtures.Lock()
	defer fixtures.Unlock()
	if path, ok := fixtures.paths[count]; ok {
		return path
	}
	directory, err := os.MkdirTemp("", "ekco-journal-bench-")
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(directory, "journal.db")
	store := mustOpen(b, path, Options{})
	for appended := 1; appended < count; {
		drafts := make([]journal.Draft, min(1000, count-appended))
		for i := range drafts {
			drafts[i] = bolttest.Observed(fmt.Sprintf("node-%d", (appended+i)*7919%1000))
		}
		bolttest.MustAppend(b, store, drafts...)
		appended += len(drafts)
	}
	snapshot := journal.Snapshot{Seq: uint64(count - 100), Fold: "bench", State: make([]byte, 1<<20)}
	if err := store.SaveSnapshot(context.Background(), snapshot); err != nil {
		b.Fatal(err)
	}
	bolttest.MustClose(b, store)
	fixtures.paths[count] = path
	return path
}

func removeFixtures() {
	for _, path := range fixtures.paths {
		_ = os.RemoveAll(filepath.Dir(path)) // in the directory for temporary files
	}
}

// BenchmarkReplay100k decodes envelope and payload of every event.
func BenchmarkReplay100k(b *testing.B) {
	store := mustOpen(b, fixture(b, 100_000), Options{})
	for b.Loop() {
		events := 0
		for event, err := range store.Read(context.Background(), journal.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			if _, err := event.Decode(); err != nil {
				b.Fatal(err)
			}
			events++
		}
		if events != 100_000 {
			b.Fatalf("replayed %d events", events)
		}
	}
}

// BenchmarkStart100k opens a journal with a snapshot as the operator does, with
// the verification of the whole file in a child, and reads what came after.
func BenchmarkStart100k(b *testing.B) { benchmarkStart(b, 100_000) }

func BenchmarkStart1M(b *testing.B) { benchmarkStart(b, 1_000_000) }

func benchmarkStart(b *testing.B, count int) {
	path := fixture(b, count)
	for b.Loop() {
		store, err := Open(b.Context(), path, inChild())
		if err != nil {
			b.Fatal(err)
		}
		snapshot, err := store.Snapshot(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if got := len(bolttest.MustRead(b, store, journal.Query{After: snapshot.Seq})); got != 100 {
			b.Fatalf("%d events after the snapshot", got)
		}
		bolttest.MustClose(b, store)
	}
}

func BenchmarkNodeHistoryIn1M(b *testing.B) {
	store := mustOpen(b, fixture(b, 1_000_000), Options{})
	for b.Loop() {
		if got := len(bolttest.MustRead(b, store, journal.Query{Node: "node-17"})); got < 990 || got > 1010 {
			b.Fatalf("history has %d events", got)
		}
	}
}

func BenchmarkNewestTenOfANodeIn1M(b *testing.B) {
	store := mustOpen(b, fixture(b, 1_000_000), Options{})
	for b.Loop() {
		if got := len(bolttest.MustRead(b, store, journal.Query{Node: "node-17", Reverse: true, Limit: 10})); got != 10 {
			b.Fatalf("history has %d events", got)
		}
	}
}

func BenchmarkVerify100k(b *testing.B) {
	path := fixture(b, 100_000)
	for b.Loop() {
		bolttest.MustVerify(b, path)
	}
}
