package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/test/syscalls"
)

func TestAnExportNeverReplacesAFileAndLeavesNoPart(t *testing.T) {
	op := &fakeOperator{past: past(t, 3)}
	d := newDesk(t, op)
	path := filepath.Join(d.dir, "events.gz")
	d.expect(d.types("journal", "export", path), exitDone, "wrote "+path+": 3 events, #1 of 2026-11-21T11:00:01Z to #3 of 2026-11-21T11:00:03Z\n", "")
	if content, err := os.ReadFile(path); err != nil || len(content) == 0 {
		t.Errorf("the file holds %q (%v)", content, err)
	}
	none := newDesk(t, &fakeOperator{})
	none.expect(none.types("journal", "export", filepath.Join(none.dir, "none.gz")), exitDone, "none.gz: no event matches\n", "")
	d.expect(d.types("journal", "export", path), exitFailed, "", "exists already")
	op.err = errors.New("broken off")
	d.expect(d.types("journal", "export", path+"2"), exitFailed, "", "broken off")
	if left, _ := filepath.Glob(filepath.Join(d.dir, "*")); len(left) != 1 {
		t.Errorf("left %v", left)
	}
}

func TestOnlyAnExportIsImported(t *testing.T) {
	op := &fakeOperator{}
	d := newDesk(t, op)
	path := filepath.Join(d.dir, "notes.txt")
	if err := os.WriteFile(path, []byte("milk\neggs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, "-"} {
		d.app.stdin = io.MultiReader(strings.NewReader("milk\n")) // a stream
		d.expect(d.types("journal", "import", file), exitFailed, "", strings.Replace(file, "-", "standard input", 1)+": line 1 is not an event")
		if said := d.errOut.String(); strings.Contains(said, "damaged") || !strings.Contains(said, "nothing was imported") {
			t.Errorf("said %q", said)
		}
	}
	if len(op.words) != 0 {
		t.Errorf("the operator was given %v", op.words)
	}

	// Of another journal: what can be said only by who has this one.
	alone := newDesk(t, nil)
	written(t, alone)
	foreign := filepath.Join(alone.dir, "foreign.gz")
	alone.expect(alone.types("journal", "export", foreign), exitDone, "", "")
	d.expect(d.types("journal", "import", foreign), exitDone, "imported 2 events, #1 to #2", "")
	if op.importedFrom != foreign {
		t.Errorf("recorded as imported from %s, want %s", op.importedFrom, foreign)
	}
	op.err = errors.New("broken off")
	d.expect(d.types("journal", "import", foreign), exitFailed, "", "import "+foreign+": broken off")
	other := newDesk(t, nil)
	written(t, other)
	other.expect(other.types("journal", "import", foreign), exitFailed, "", "import "+foreign+": import the export into journal")
}

func TestVerifyFailsIfTheJournalIsDamaged(t *testing.T) {
	op := &fakeOperator{verified: api.VerifyResult{OK: true, Events: 9, FirstSeq: 1, LastSeq: 9}}
	d := newDesk(t, op)
	d.expect(d.types("journal", "verify"), exitDone, "intact: 9 events, #1 to #9", "")
	op.verified = api.VerifyResult{Problem: "hash of #4"}
	d.expect(d.types("journal", "verify"), exitFailed, "damaged: hash of #4", "")
	d.expect(d.types("journal", "verify", "-o", "json"), exitFailed, `"ok": false`, "")
}

// expectExport checks that a file holds gzip'ed records of an unbroken chain.
func expectExport(t *testing.T, path string, want int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var previous journal.Hash
	n := 0
	for lines := bufio.NewScanner(unpacked); lines.Scan(); n++ {
		if previous, err = journal.CheckRecord(previous, lines.Bytes()); err != nil {
			t.Errorf("line %d: %v", n+1, err)
		}
	}
	if n != want {
		t.Errorf("the export has %d records, want %d", n, want)
	}
}

func TestADamagedFileIsReportedByVerify(t *testing.T) {
	d := newDesk(t, nil)
	path := written(t, d)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(content), "worker-2")
	content[at] ^= 0xff
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("journal", "verify"), exitFailed, "damaged", "")
}

func TestVerifySaysPlainlyThatAFileIsNoJournal(t *testing.T) {
	d := newDesk(t, nil)
	path := filepath.Join(d.dir, "notes")
	if err := os.WriteFile(path, []byte("milk, bread\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("journal", "verify", "--journal", path), exitNotAJournal, path+" is not an EKCO journal", "")
	if said := d.out.String(); strings.Contains(said, "damaged") {
		t.Errorf("it says %q", said)
	}
	d.expect(d.types("journal", "verify", "--journal", path, "-o", "json"), exitNotAJournal, `"not_a_journal": true`, "")
}

// watched makes the test binary run ekco, and print which files it syncs and names.
const watched = "watched"

func runWatched(arguments []string) (code int) {
	disk, err := syscalls.WatchDisk()
	if err != nil {
		panic(err)
	}
	calls, err := disk.During(func() error {
		code = run(context.Background(), newApp(), arguments)
		return nil
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Join(calls, "\n"))
	return code
}

func TestAnExportIsOnDiskWhenTheCommandEnds(t *testing.T) {
	d := newDesk(t, nil)
	journal, export := written(t, d), filepath.Join(d.dir, "events.gz")
	output, err := exec.CommandContext(t.Context(), "/proc/self/exe", watched, "journal", "export", export, "--journal", journal).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	err = syscalls.InThatOrder(strings.Split(string(output), "\n"),
		"fsync events.gz.part-", "link events.gz.part-", "fsync "+filepath.Base(d.dir))
	if err != nil {
		t.Error(err)
	}
}
