package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/test/syscalls"
)

func init() {
	children["durable"] = func(arguments []string) int { return report(whatReturnsIsOnDisk(arguments[0])) }
	children["failed-export"] = func(arguments []string) int { return report(aFailedExportDeletesNothing(arguments[0])) }
	children["failed-prune"] = func(arguments []string) int { return report(anInterruptedPruneIsRepeated(arguments[0])) }
	children["failed-sync"] = func(arguments []string) int { return report(aFailedSyncIsAnError(arguments[0])) }
}

func underWatch(t *testing.T, child string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", child, bolttest.NewPath(t))
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestEverythingIsOnDiskInOrderWhenACallReturns(t *testing.T) { underWatch(t, "durable") }

func whatReturnsIsOnDisk(path string) error {
	ctx := context.Background()
	base := "fsync " + filepath.Base(filepath.Dir(path))
	var store *Store
	var exported journal.JournalExported
	var anew bool
	steps := []struct {
		what string
		do   func() error
		want []string
	}{
		{"create", func() (err error) {
			store, err = Open(ctx, path, Options{})
			return err
		}, []string{"fsync journal.db.new", "rename journal.db.new to journal.db", base}},
		{"append", func() error {
			_, err := store.Append(ctx, bolttest.ObservedMany("a", 3000)...)
			return err
		}, []string{"pwrite journal.db", "fsync journal.db", "pwrite journal.db", "fsync journal.db"}},
		{"bind", func() error { return store.BindCluster(ctx, "cluster") }, []string{"fsync journal.db"}},
		{"snapshot", func() error {
			return store.SaveSnapshot(ctx, journal.Snapshot{Seq: 3000, Fold: "test", State: []byte("{}")})
		}, []string{"fsync journal.db"}},
		{"retain", func() (err error) {
			exported, err = store.Retain(ctx, RetainOptions{Before: time.Now()})
			return err
		}, []string{"fsync journal.db.export", "rename journal.db.export to journal-2-3000.ndjson.gz", base, "pwrite journal.db", "fsync journal.db"}},
		{"import", func() error {
			_, err := store.Import(ctx, exported.File, "")
			return err
		}, []string{"fsync journal.db"}},
		{"prune", func() error {
			if err := os.WriteFile(strings.ReplaceAll(exported.File, "journal-2-", "journal-3-"), nil, files.FileMode); err != nil {
				return err
			}
			return store.Prune(ctx, PruneOptions{Before: time.Now().Add(time.Hour)})
		}, []string{"pwrite journal.db", "fsync journal.db", "unlink journal-2-3000.ndjson.gz", base}},
		{"compact", func() error {
			_, _, err := store.Compact(ctx)
			return err
		}, []string{"fsync journal.db.compact", "rename journal.db.compact to journal.db", base}},
		{"append after compaction", func() error {
			_, err := store.Append(ctx, bolttest.Observed("a"))
			return err
		}, []string{"pwrite journal.db", "fsync journal.db"}},
		{"salvage", func() error {
			if err := errors.Join(store.Close(), spoil(path)); err != nil {
				return err
			}
			var salvaged *Salvage
			var err error
			store, salvaged, err = OpenOrSalvage(ctx, path, Options{})
			anew = salvaged != nil
			return err
		}, []string{
			"fsync journal.db.salvage", "link journal.db to journal.db.damaged-", base,
			"rename journal.db.salvage to journal.db", base,
		}},
		{"append after salvage", func() error {
			_, err := store.Append(ctx, bolttest.Observed("a"))
			return err
		}, []string{"pwrite journal.db", "fsync journal.db"}},
		{"begin anew", func() error {
			err := store.Close()
			if err == nil {
				_, err = Begin(ctx, path, Options{OwnPath: true}, "another cluster")
			}
			if err == nil {
				store, err = Open(ctx, path, Options{})
			}
			return err
		}, []string{
			"fsync journal.db.new", "link journal.db to journal.db.of-cluster-", base,
			"rename journal.db.new to journal.db", base,
		}},
	}
	disk, err := syscalls.WatchDisk()
	if err != nil {
		return err
	}
	for _, step := range steps {
		made, err := disk.During(step.do)
		if err == nil {
			err = syscalls.InThatOrder(made, step.want...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	if !anew {
		return errors.New("nothing was salvaged")
	}
	return store.Close()
}

// spoil damages an event near the end.
func spoil(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	content[strings.LastIndex(string(content), `"seq":2990,`)+30] ^= 1
	return os.WriteFile(path, content, files.FileMode)
}

func TestRetentionWhoseExportFailsDeletesNothing(t *testing.T) { underWatch(t, "failed-export") }

func aFailedExportDeletesNothing(path string) error {
	ctx := context.Background()
	store, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	if _, err := store.Append(ctx, bolttest.ObservedMany("a", 3000)...); err != nil {
		return err
	}
	if err := store.SaveSnapshot(ctx, journal.Snapshot{Seq: 3000, Fold: "test", State: []byte("{}")}); err != nil {
		return err
	}
	disk, err := syscalls.WatchDisk()
	if err != nil {
		return err
	}
	for _, fails := range []string{"fsync journal.db.export", "rename journal.db.export", "fsync " + filepath.Base(filepath.Dir(path))} {
		disk.Fail(func(call syscalls.Call) bool { return strings.HasPrefix(call.String(), fails) })
		if _, err := store.Retain(ctx, RetainOptions{Before: time.Now()}); err == nil {
			return fmt.Errorf("with %s failing, retention says that all is well", fails)
		}
		if stat, err := store.Stat(ctx); err != nil || stat.Events != 3001 {
			return fmt.Errorf("with %s failing, %d of 3001 events are left (%w)", fails, stat.Events, err)
		}
	}
	disk.Fail(nil)
	exported, err := store.Retain(ctx, RetainOptions{Before: time.Now()})
	if err != nil || exported.Events < 2999 {
		return fmt.Errorf("when the disk works again, retention moves %d events: %w", exported.Events, err)
	}
	return store.Close()
}

func TestAnInterruptedPruneIsRecordedAndRepeated(t *testing.T) { underWatch(t, "failed-prune") }

func anInterruptedPruneIsRepeated(path string) error {
	ctx := context.Background()
	store, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	old := path + ".damaged-20260101T000000Z"
	for _, file := range []string{old, path + ".damaged-20260102T000000Z"} {
		if err := os.WriteFile(file, nil, files.FileMode); err != nil {
			return err
		}
	}
	disk, err := syscalls.WatchDisk()
	if err != nil {
		return err
	}
	for _, want := range []struct {
		interrupted bool
		pruned      int
	}{{true, 1}, {false, 2}, {false, 2}} {
		disk.Fail(func(call syscalls.Call) bool { return want.interrupted && call.Name == "unlink" && call.Path == old })
		err := store.Prune(ctx, PruneOptions{Before: time.Now()})
		_, statErr := os.Stat(old)
		if pruned, readErr := prunedFiles(ctx, store); (err == nil) == want.interrupted || os.IsNotExist(statErr) == want.interrupted || len(pruned) != want.pruned {
			return fmt.Errorf("interrupted %t: %w, %w; on record are %q, %w", want.interrupted, err, statErr, pruned, readErr)
		}
	}
	return store.Close()
}

func TestASyncThatFailsIsAnErrorOfWhatWantedIt(t *testing.T) { underWatch(t, "failed-sync") }

func aFailedSyncIsAnError(path string) error {
	ctx := context.Background()
	disk, err := syscalls.WatchDisk()
	if err != nil {
		return err
	}
	syncs := func(name string) func(syscalls.Call) bool {
		return func(call syscalls.Call) bool { return call.String() == "fsync "+name }
	}
	for _, name := range []string{"journal.db.new", filepath.Base(filepath.Dir(path))} {
		disk.Fail(syncs(name))
		store, err := Open(ctx, path, Options{})
		if err == nil {
			return errors.Join(fmt.Errorf("a journal is made although %s cannot be synced", name), store.Close())
		}
		if !errors.Is(err, journal.ErrUnwritable) {
			return fmt.Errorf("when %s cannot be synced, opening says: %w", name, err)
		}
	}
	disk.Fail(nil)
	store, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	disk.Fail(syncs("journal.db"))
	if _, err := store.Append(ctx, bolttest.Observed("refused")); !errors.Is(err, journal.ErrUnwritable) {
		return fmt.Errorf("when the journal cannot be synced, an append says: %w", err)
	}
	disk.Fail(nil)
	if _, err := disk.During(func() error {
		_, err := store.Append(ctx, bolttest.Observed("a"))
		return err
	}); err != nil {
		return err
	}
	if err := checkEnd(store, 2); err != nil {
		return err
	}
	return store.Close()
}
