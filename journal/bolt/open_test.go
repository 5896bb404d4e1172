package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/internal/layout"
)

func init() {
	children["hold"] = holdJournal
	children["hold-bolt"] = holdBolt
}

// holdJournal keeps a journal open until its standard input ends.
func holdJournal(arguments []string) int {
	store, err := Open(context.Background(), arguments[0], Options{})
	return holdUntilTold(store, err)
}

// holdBolt keeps only bbolt's own lock, as a foreign tool would.
func holdBolt(arguments []string) int {
	db, err := bbolt.Open(arguments[0], files.FileMode, nil)
	return holdUntilTold(db, err)
}

func holdUntilTold(closer io.Closer, err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := closer.Close(); err != nil {
		return 1
	}
	return 0
}

// startChild runs this test binary as another program, and waits for its first
// line.
func startChild(t *testing.T, arguments ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", arguments...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait() // it may have been killed
	})
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return command, lines
}

func TestASecondOpenerIsToldWhoHoldsTheJournal(t *testing.T) {
	for _, how := range []string{"hold", "hold-bolt"} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read-only %t", how, readOnly), func(t *testing.T) {
				path := bolttest.NewPath(t)
				bolttest.MustClose(t, mustOpen(t, path, Options{}))
				child, _ := startChild(t, how, path)
				begin := time.Now()
				_, err := Open(t.Context(), path, Options{ReadOnly: readOnly})
				if !errors.Is(err, journal.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint("pid ", child.Process.Pid)) {
					t.Errorf("open of a journal that pid %d holds: %v", child.Process.Pid, err)
				}
				if took := time.Since(begin); took > 20*time.Second {
					t.Errorf("it took %s to say so", took)
				}
			})
		}
	}
}

func TestAJournalIsFreeAfterItsHolderWasKilled(t *testing.T) {
	path := bolttest.NewPath(t)
	child, lines := startChild(t, "hold", path)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, lines) // ends with the process
	bolttest.MustAppend(t, mustOpen(t, path, inChild()), bolttest.Observed("a"))
}

func TestReadersShareAJournal(t *testing.T) {
	path := bolttest.NewPath(t)
	bolttest.MustClose(t, mustOpen(t, path, Options{}))
	first := mustOpen(t, path, Options{ReadOnly: true})
	second := mustOpen(t, path, Options{ReadOnly: true})
	for _, store := range []*Store{first, second} {
		if got := len(bolttest.MustRead(t, store, journal.Query{})); got != 1 {
			t.Errorf("read %d events", got)
		}
		if _, err := store.Append(t.Context(), bolttest.Observed("a")); !errors.Is(err, journal.ErrUnwritable) {
			t.Errorf("append to a journal opened read-only: %v", err)
		}
	}
	if _, err := Open(t.Context(), path, Options{}); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("a writer came in beside readers: %v", err)
	}
}

func TestAMissingDirectoryIsMadeForItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "journal.db")
	mustOpen(t, path, Options{})
	for name, want := range map[string]fs.FileMode{
		filepath.Dir(path): fs.ModeDir | 0o700, path: 0o600, path + files.LockSuffix: 0o600,
	} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), want)
		}
	}
}

func TestWhatWasAppendedIsThereAfterReopening(t *testing.T) {
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{})
	for i := range 13 { // ends in, at and after the end of index blocks
		bolttest.MustAppend(t, store, bolttest.ObservedMany(fmt.Sprint("node-", i), []int{1, 511, 1022, 1, 1}[i%5])...)
		want := bolttest.MustRead(t, store, journal.Query{})
		bolttest.MustClose(t, store)
		store = mustOpen(t, path, inChild())
		got := bolttest.MustRead(t, store, journal.Query{})
		if len(got) != len(want) || !bolttest.SameRecord(got[len(got)-1], want[len(want)-1]) {
			t.Fatalf("after reopening the journal has %d events, want %d", len(got), len(want))
		}
		query := journal.Query{Node: fmt.Sprint("node-", i)}
		if got := len(bolttest.MustRead(t, store, query)); got != []int{1, 511, 1022, 1, 1}[i%5] {
			t.Errorf("the index finds %d events", got)
		}
	}
	bolttest.MustClose(t, store)
	bolttest.MustVerify(t, path)
}

func TestAFileOfAnotherFormatIsRefusedAndNotTouched(t *testing.T) {
	path := bolttest.NewPath(t)
	bolttest.MustClose(t, mustOpen(t, path, Options{}))
	db, err := files.OpenDB(path, false)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		return layout.PutSealed(tx.Bucket(layout.MetaBucket), layout.IdentityKey, layout.Identity{Format: journal.Format + 1, JournalID: "future"})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenOrSalvage(t.Context(), path, inChild()); !errors.Is(err, journal.ErrOtherFormat) {
		t.Errorf("open of a future format: %v", err)
	}
}

func TestTimesThatRunBackwardsAreFoundByTime(t *testing.T) {
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := base
	path := bolttest.NewPath(t)
	store := mustOpen(t, path, Options{Now: func() time.Time { return now }})
	for i := range 2500 {
		now = base.Add(time.Duration(i*7919%2500) * time.Minute)
		bolttest.MustAppend(t, store, bolttest.Observed("a"))
	}
	all := bolttest.MustRead(t, store, journal.Query{})
	for hour := 0; hour < 42; hour += 5 {
		query := journal.Query{Since: base.Add(time.Duration(hour) * time.Hour), Until: base.Add(time.Duration(hour+2) * time.Hour)}
		want := 0
		for _, event := range all {
			if query.Matches(event) {
				want++
			}
		}
		if got := len(bolttest.MustRead(t, store, query)); got != want || want == 0 {
			t.Errorf("hour %d: found %d events, want %d", hour, got, want)
		}
	}
}
