package rescue_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
	"github.com/replicatedhq/ekco/journal/bolt/bolttest"
	"github.com/replicatedhq/ekco/journal/bolt/internal/files"
	"github.com/replicatedhq/ekco/journal/bolt/rescue"
)

func init() {
	children["panic"] = func([]string) int { panic("a page makes no sense") }
	children["panic-beside"] = panicBeside
	children["own-group"] = ownGroup
}

// panicBeside panics where nobody can recover, as bbolt's own check may.
func panicBeside([]string) int {
	go func() { panic("a page makes no sense") }()
	select {}
}

// ownGroup answers that the file is sound if a signal to the process group of its
// parent would not reach it.
func ownGroup(arguments []string) int {
	if syscall.Getpgrp() != os.Getpid() {
		return 1
	}
	return rescue.Child(arguments, os.Stdout, os.Stderr)
}

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

func self(child string) []string { return []string{"/proc/self/exe", child} }

// left returns the content of every file in the journal's directory but the lock.
func left(t *testing.T, path string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	contents := make(map[string]string)
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		contents[name] = string(content)
	}
	delete(contents, path+files.LockSuffix)
	return contents
}

func TestAVerifierThatIsKilledOrGivesUpSaysNothingAboutTheJournal(t *testing.T) {
	for name, child := range map[string][]string{
		"killed by Ctrl-C":              shell("kill -INT $$"),
		"killed by the kernel":          shell("kill -KILL $$"),
		"asked to stop":                 shell("kill -TERM $$"),
		"aborted":                       shell("kill -ABRT $$"),
		"cannot read":                   shell("echo input/output error >&2; exit 1"),
		"out of memory":                 shell("echo 'fatal error: runtime: out of memory' >&2; exit 2"),
		"asked for what it cannot do":   shell("echo usage >&2; exit 2"),
		"without an answer":             shell("exit 0"),
		"with half an answer":           shell(`printf '{"report":{"pa'`),
		"with an error of another kind": shell(`echo '{"problem":"read page 7: input/output error"}'`),
		"that cannot be started":        {"/no/such/program"},
	} {
		t.Run(name, func(t *testing.T) {
			path := bolttest.NewPath(t)
			store := mustOpen(t, path, bolt.Options{})
			bolttest.MustAppend(t, store, bolttest.ObservedMany("a", 100)...)
			bolttest.MustClose(t, store)
			before := left(t, path)
			store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, bolt.Options{Child: child})
			if !errors.Is(err, journal.ErrUnverified) || errors.Is(err, journal.ErrDamaged) || store != nil || salvaged != nil {
				t.Errorf("opened %v, salvaged %v: %v", store, salvaged, err)
			}
			if after := left(t, path); len(after) != 1 || after[path] != before[path] {
				t.Error("the journal was touched")
			}
			bolttest.MustClose(t, mustOpen(t, path, inChild())) // and is free
		})
	}
}

func TestAVerifierThatDiesOfTheFileMeansDamage(t *testing.T) {
	for name, child := range map[string][]string{
		"a fault":                     shell("echo rotten >&2; kill -SEGV $$"),
		"a page that cannot be had":   shell("kill -BUS $$"),
		"a panic":                     self("panic"),
		"a panic where nobody can be": self("panic-beside"),
		"a fault of a Go program":     shell("echo 'unexpected fault address 0x7f' >&2; echo 'fatal error: fault' >&2; exit 2"),
	} {
		t.Run(name, func(t *testing.T) {
			path := bolttest.NewPath(t)
			bolttest.MustClose(t, mustOpen(t, path, bolt.Options{}))
			if _, err := bolt.Open(t.Context(), path, bolt.Options{Child: child}); !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("open: %v", err)
			}
		})
	}
}

func TestAnOpenThatIsBrokenOffSaysNothingAboutTheJournal(t *testing.T) {
	path := bolttest.NewPath(t)
	bolttest.MustClose(t, mustOpen(t, path, bolt.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err := bolt.OpenOrSalvage(ctx, path, bolt.Options{Child: shell("exec sleep 600")})
	if !errors.Is(err, context.DeadlineExceeded) || rescue.Finding(err) {
		t.Errorf("open: %v", err)
	}
	if len(left(t, path)) != 1 {
		t.Error("the journal was touched")
	}
}

func TestASignalToTheProcessGroupDoesNotReachAVerifier(t *testing.T) {
	path := bolttest.NewPath(t)
	bolttest.MustClose(t, mustOpen(t, path, bolt.Options{}))
	bolttest.MustClose(t, mustOpen(t, path, bolt.Options{Child: self("own-group")}))
}

func TestASalvageThatIsKilledIsNotTakenForAllThatIsLeft(t *testing.T) {
	content, _, _ := damageJournal(t)
	content[strings.LastIndex(string(content), `"seq":1199,`)+30] ^= 1
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := os.WriteFile(path, content, files.FileMode); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]string{"killed": "kill -KILL $$", "cannot read on": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			// The child that salvages gives the first 300 lines, and ends.
			half := []string{"/bin/sh", "-c", `if [ "$1" = salvage ]; then "$0" ` + bolttest.ChildArgument + ` "$@" | head -n 300; ` + end +
				`; fi; exec "$0" ` + bolttest.ChildArgument + ` "$@"`, exe}
			store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, bolt.Options{Child: half})
			if !errors.Is(err, journal.ErrUnverified) || store != nil || salvaged != nil {
				t.Fatalf("opened %v, salvaged %+v: %v", store, salvaged, err)
			}
			if contents := left(t, path); len(contents) != 1 || !bytes.Equal([]byte(contents[path]), content) {
				t.Errorf("the damaged file was touched, or something left beside it")
			}
		})
	}
	store, salvaged, err := bolt.OpenOrSalvage(t.Context(), path, inChild())
	if err != nil || salvaged == nil || salvaged.LastSeq != 1198 {
		t.Fatalf("salvaged %+v: %v", salvaged, err)
	}
	bolttest.MustClose(t, store)
}

func TestACheckThatIsKilledDoesNotFindDamage(t *testing.T) {
	path := bolttest.NewPath(t)
	bolttest.MustClose(t, mustOpen(t, path, bolt.Options{}))
	if _, err := rescue.VerifyIn(t.Context(), shell("kill -KILL $$"), path); !errors.Is(err, journal.ErrUnverified) || rescue.Finding(err) {
		t.Errorf("a check that is killed: %v", err)
	}
	if report, err := rescue.VerifyIn(t.Context(), self(bolttest.ChildArgument), path); err != nil || report.Events != 1 {
		t.Errorf("a check that comes to its end: %+v, %v", report, err)
	}
	store := mustOpen(t, path, bolt.Options{})
	if _, err := rescue.VerifyIn(t.Context(), self(bolttest.ChildArgument), path); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("a check of a journal in use: %v", err)
	}
	bolttest.MustClose(t, store)
}
