package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

const smallJournal = 1 << 20

// keptHouse keeps the house of a new journal until the test ends.
func keptHouse(t *testing.T, keep func(journal.Event) bool) (*bolt.Store, *bytes.Buffer) {
	t.Helper()
	store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.JournalMaxSize = smallJournal
	var log bytes.Buffer
	h := &housekeeper{
		cfg: cfg, store: store, metrics: api.NewMetrics(), log: slog.New(slog.NewTextHandler(&log, nil)),
		needed:   func(context.Context) (func(journal.Event) bool, error) { return keep, nil },
		mayPrune: func(context.Context) (bool, error) { return true, nil },
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, &log
}

// flap appends what a node that comes and goes leaves in an hour, and a snapshot.
func flap(t *testing.T, store *bolt.Store) {
	t.Helper()
	var drafts []journal.Draft
	for i := range 1000 {
		drafts = append(drafts, journal.Draft{
			Type: journal.TypeNodeObserved, Subject: journal.NodeSubject("worker-1", "u1"), Actor: "observer/node",
			Payload: journal.NodeObserved{NodeFacts: journal.NodeFacts{Role: journal.RoleWorker, Hostname: fmt.Sprint("worker-1-", i)}},
		})
	}
	events, err := store.Append(t.Context(), drafts...)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := journal.Snapshot{Seq: events[len(events)-1].Seq, Fold: "test", State: []byte("{}")}
	if err := store.SaveSnapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
}

func contentOf(t *testing.T, store *bolt.Store) int64 {
	t.Helper()
	stat, err := store.Stat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stat.Bytes - stat.FreeBytes
}

func TestAJournalThatGrowsFasterThanItAgesStaysWithinItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := keptHouse(t, nil)
		most := int64(0)
		for range 24 {
			flap(t, store)
			time.Sleep(2 * measureInterval)
			most = max(most, contentOf(t, store))
			time.Sleep(time.Hour - 2*measureInterval)
		}
		if most > smallJournal || most < smallJournal/2 {
			t.Errorf("the journal had %d bytes of content, its limit is %d", most, smallJournal)
		}
		if log.Len() > 0 {
			t.Errorf("it says\n%s", log)
		}
	})
}

func TestOldExportsAreRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		maxSize config.Bytes
		mayNot  bool
		age     time.Duration
		left    int
	}{
		"too large":            {maxSize: smallJournal, left: 2},
		"no limit of the size": {left: 3},
		"old":                  {age: 3 * config.Default().JournalRetention, left: 3},
		"too old":              {age: 5 * config.Default().JournalRetention, left: 1},
		"large, but not now":   {maxSize: smallJournal, mayNot: true, left: 3},
		"as large as can be":   {maxSize: math.MaxInt64, left: 3},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := bolt.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			flap(t, store)
			stat, err := store.Stat(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			dir, at := filepath.Dir(stat.Path), time.Now().Add(-test.age)
			for i := range 3 {
				name := filepath.Join(dir, fmt.Sprintf("journal-%d-%d.ndjson.gz", 10*i+2, 10*i+9))
				if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, smallJournal), os.Chtimes(name, at, at)); err != nil {
					t.Fatal(err)
				}
			}
			cfg := config.Default()
			cfg.JournalMaxSize = test.maxSize
			h := &housekeeper{cfg: cfg, store: store, mayPrune: func(context.Context) (bool, error) { return !test.mayNot, nil }}
			err = h.pruneFiles(t.Context())
			left, globErr := filepath.Glob(filepath.Join(dir, "journal-*.ndjson.gz"))
			if err != nil || globErr != nil || len(left) != test.left {
				t.Errorf("left are %q, want %d; %v, %v", left, test.left, err, globErr)
			}
		})
	}
}

func TestAJournalThatMayNotShrinkIsReadForItOnlyOnceAnHourAndThatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log := keptHouse(t, func(journal.Event) bool { return true })
		for range 10 {
			flap(t, store)
		}
		time.Sleep(5*time.Hour + measureInterval/2)
		synctest.Wait() // nobody writes the log while it is read
		if n := strings.Count(log.String(), "larger than journal_max_size"); n < 4 || n > 6 {
			t.Errorf("in 5 hours it says so %d times:\n%s", n, log)
		}
	})
}
