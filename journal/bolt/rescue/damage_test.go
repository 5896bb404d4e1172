package rescue_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
	"github.com/replicatedhq/ekco/journal/crashpoints"
)

// damagePage is the page size of the files that the matrix damages.
var damagePage = os.Getpagesize()

// damageJournal is a journal with full and unfinished index blocks, a snapshot,
// a cluster, a gap and free pages, together with its events and those moved out.
func damageJournal(t *testing.T) (content []byte, events, moved []journal.Event) {
	t.Helper()
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, bolt.Options{})
	for i := range 15 {
		bolttest.MustAppend(t, store, bolttest.ObservedMany(fmt.Sprintf("node-%d", i%7), 80)...)
	}
	if err := store.BindCluster(t.Context(), "cluster-uid"); err != nil {
		t.Fatal(err)
	}
	snapshot := journal.Snapshot{Seq: 1000, Fold: "test/1", State: []byte(strings.Repeat("state", 3000))}
	if err := store.SaveSnapshot(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	moved = bolttest.MustRead(t, store, journal.Query{After: 399, Before: 701})
	if _, err := store.Retain(t.Context(), bolt.RetainOptions{
		Before: time.Now(), Keep: func(event journal.Event) bool { return event.Seq < 400 || event.Seq > 700 },
	}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		bolttest.MustAppend(t, store, bolttest.Observed("node-3"))
	}
	events = bolttest.MustRead(t, store, journal.Query{})
	bolttest.MustClose(t, store)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content, events, moved
}

// damage is a way to spoil a file.
type damage struct {
	name  string
	spoil func() []byte
}

// damages lists ways to spoil a file, each with a copy of the content. Those that follow one
// another are alike.
func damages(content []byte) (all []damage) {
	random := rand.New(rand.NewPCG(1, 2))
	add := func(spoil func() []byte, format string, args ...any) {
		all = append(all, damage{fmt.Sprintf(format, args...), spoil})
	}
	flip := func(at int) {
		bit := byte(1 + random.IntN(255))
		add(func() []byte {
			spoiled := append([]byte(nil), content...)
			spoiled[at] ^= bit
			return spoiled
		}, "flip %d by %02x", at, bit)
	}
	pages := len(content) / damagePage
	for range 150 {
		flip(random.IntN(len(content)))
	}
	for range 120 { // the headers of pages and of their first items
		flip(random.IntN(pages)*damagePage + random.IntN(64))
	}
	for at := 16; at < 80; at++ { // the meta pages
		flip(at)
		flip(damagePage + at)
	}
	for i := range 200 {
		page := i % pages
		if i >= pages {
			page = random.IntN(pages)
		}
		count := 1 + i/pages
		add(func() []byte {
			spoiled := append([]byte(nil), content...)
			clear(spoiled[page*damagePage : min(len(spoiled), (page+count)*damagePage)])
			return spoiled
		}, "zero page %d and %d more", page, count-1)
	}
	for i := range 100 {
		size := random.IntN(len(content))
		if i < 10 {
			size = i * damagePage / 2
		}
		add(func() []byte { return content[:size:size] }, "truncate to %d", size)
	}
	return all
}

func TestNoDamageIsSilent(t *testing.T) {
	content, events, moved := damageJournal(t)
	all := damages(content)
	if len(all) < 300+200+100 {
		t.Fatalf("the matrix has only %d cases", len(all))
	}
	chosen := crashpoints.ChooseOf(t, all)
	var fine, detected atomic.Int32
	t.Run("matrix", func(t *testing.T) {
		for _, damage := range chosen {
			t.Run(damage.name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "journal.db")
				spoiled := damage.spoil()
				for file, content := range map[string][]byte{path: spoiled, path + files.LockSuffix: {}} {
					if err := os.WriteFile(file, content, files.FileMode); err != nil {
						t.Fatal(err)
					}
				}
				store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, inChild())
				if err != nil {
					t.Fatalf("could not be opened: %v", err)
				}
				defer bolttest.MustClose(t, store)
				if salvaged == nil {
					fine.Add(1)
					checkFine(t, store, events)
				} else {
					detected.Add(1)
					checkSalvaged(t, store, salvaged, spoiled, events, moved)
				}
				bolttest.MustAppend(t, store, bolttest.Observed("after"))
			})
		}
	})
	t.Logf("%d fine, %d detected", fine.Load(), detected.Load())
	if len(chosen) == len(all) && (fine.Load() == 0 || detected.Load() == 0) {
		t.Error("the matrix should have both outcomes")
	}
}

// checkFine wants every event, in every way of reading.
func checkFine(t *testing.T, store *bolt.Store, want []journal.Event) {
	t.Helper()
	if !slices.EqualFunc(bolttest.MustRead(t, store, journal.Query{}), want, bolttest.SameRecord) {
		t.Error("events differ without a word")
	}
	for node := range 7 {
		query := journal.Query{Node: fmt.Sprintf("node-%d", node)}
		matching := 0
		for _, event := range want {
			if query.Matches(event) {
				matching++
			}
		}
		if got := len(bolttest.MustRead(t, store, query)); got != matching {
			t.Errorf("the index finds %d events of %s, want %d", got, query.Node, matching)
		}
	}
}

// checkSalvaged wants a prefix, an event that says so, and the damaged file.
// Events that had been moved out may come back from pages that were free.
func checkSalvaged(t *testing.T, store *bolt.Store, salvaged *bolt.Salvage, spoiled []byte, want, moved []journal.Event) {
	t.Helper()
	got := bolttest.MustRead(t, store, journal.Query{})
	last := got[len(got)-1]
	payload, err := last.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&salvaged.JournalSalvaged, payload); diff != "" {
		t.Errorf("the last event does not say what was lost (-want +got):\n%s", diff)
	}
	if salvaged.Recovered > 0 {
		if len(got) != int(salvaged.Recovered)+1 {
			t.Errorf("the journal has %d events, want %d and one", len(got), salvaged.Recovered)
		}
		checkPrefix(t, got[:len(got)-1], want, moved)
	}
	if salvaged.LastSeq+salvaged.LostAtLeast > want[len(want)-1].Seq {
		t.Errorf("salvaged to %d and lost %d: the journal ended at %d", salvaged.LastSeq, salvaged.LostAtLeast, want[len(want)-1].Seq)
	}
	aside, err := os.ReadFile(salvaged.DamagedFile)
	if err != nil || string(aside) != string(spoiled) {
		t.Errorf("the damaged file was not kept as it was: %v", err)
	}
}

// checkPrefix wants the first of the events, without a hole but that of those
// moved out.
func checkPrefix(t *testing.T, got, want, moved []journal.Event) {
	t.Helper()
	for _, event := range got {
		if len(want) > 0 && bolttest.SameRecord(event, want[0]) {
			want = want[1:]
			continue
		}
		if !slices.ContainsFunc(moved, func(m journal.Event) bool { return bolttest.SameRecord(event, m) }) {
			t.Errorf("salvaged event %d differs", event.Seq)
			return
		}
	}
}

func TestADamagedBranchCostsNoEvent(t *testing.T) {
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, bolt.Options{})
	bolttest.MustAppend(t, store, bolttest.ObservedMany("a", 2000)...)
	want := bolttest.MustRead(t, store, journal.Query{})
	bolttest.MustClose(t, store)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for page := 2; page < len(content)/damagePage; page++ {
		if content[page*damagePage+8] == rescue.BranchPage {
			clear(content[page*damagePage : (page+1)*damagePage])
		}
	}
	if err := os.WriteFile(path, content, files.FileMode); err != nil {
		t.Fatal(err)
	}
	store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, inChild())
	if err != nil {
		t.Fatal(err)
	}
	defer bolttest.MustClose(t, store)
	if salvaged == nil || salvaged.Recovered != 2001 || salvaged.LostAtLeast != 0 {
		t.Errorf("salvaged %+v, want all of 2001 events", salvaged)
	}
	if !slices.EqualFunc(bolttest.MustRead(t, store, journal.Query{})[:2001], want, bolttest.SameRecord) {
		t.Error("events differ")
	}
}

func TestSalvageKeepsIdentityClusterAndSnapshot(t *testing.T) {
	content, _, _ := damageJournal(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	broken := strings.LastIndex(string(content), `"seq":1199,`) // near the end, far from the rest
	content[broken+30] ^= 1
	if err := os.WriteFile(path, content, files.FileMode); err != nil {
		t.Fatal(err)
	}
	if _, err := bolt.Open(t.Context(), path, inChild()); !errors.Is(err, journal.ErrDamaged) {
		t.Fatalf("open of a damaged journal: %v", err)
	}
	store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, inChild())
	if err != nil {
		t.Fatal(err)
	}
	defer bolttest.MustClose(t, store)
	if salvaged.LastSeq != 1198 || salvaged.LostAtLeast != 1212-1198 {
		t.Errorf("salvaged %+v", salvaged)
	}
	if err := store.BindCluster(t.Context(), "other"); !errors.Is(err, journal.ErrOtherCluster) {
		t.Errorf("the salvaged journal forgot its cluster: %v", err)
	}
	if snapshot, err := store.Snapshot(t.Context()); err != nil || snapshot.Seq != 1000 {
		t.Errorf("the salvaged journal's snapshot is %d, %v", snapshot.Seq, err)
	}
}

func TestADamagedJournalThatIsOnlyReadIsLeftAsItIs(t *testing.T) {
	content, _, _ := damageJournal(t)
	at := bytes.Index(content, []byte("node-3"))
	content[at] ^= 1
	path := bolttest.NewPath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := bolt.OpenOrSalvage(t.Context(), path, bolt.Options{ReadOnly: true}); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
		t.Errorf("the file was changed, or is gone: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("beside it are %v, %v", entries, err)
	}
}
