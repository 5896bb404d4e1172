package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// kept returns a FormerFile of a file with the content "former\n", whose copy is in another directory.
func kept(t *testing.T, inPlace bool) *FormerFile {
	t.Helper()
	f := &FormerFile{Path: file(t, "former\n", 0o640), CopyPath: filepath.Join(t.TempDir(), "copy"), Limit: 100, InPlace: inPlace}
	if err := f.Keep(); err != nil {
		t.Fatal(err)
	}
	return f
}

// becomes writes the file, which stays the same file.
func (f *FormerFile) becomes(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(f.Path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRestoreUndoesOnlyTheOwnChange(t *testing.T) {
	for name, test := range map[string]struct {
		present      string
		restored, ok bool
		want         string
	}{
		"changed":                         {"changed\n", true, true, "former\n"},
		"another program undid it":        {"former\n", false, true, "former\n"},
		"another program changed it more": {"another\n", false, false, "another\n"},
	} {
		for _, inPlace := range []bool{false, true} {
			f := kept(t, inPlace)
			f.becomes(t, "changed\n")
			if err := f.Changed(); err != nil {
				t.Fatal(err)
			}
			f.becomes(t, test.present)
			before := stat(t, f.Path)
			if restored, err := f.Restore(); restored != test.restored || (err == nil) != test.ok {
				t.Errorf("%s, in place %v: restored %v, %v", name, inPlace, restored, err)
			}
			expect(t, f.Path, test.want, 0o640)
			if same := os.SameFile(before, stat(t, f.Path)); same != (inPlace || !test.restored) {
				t.Errorf("%s, in place %v: it is the same file: %v", name, inPlace, same)
			}
		}
	}
}

// TestARestoredFileHasItsFormerMode, unless it is the same file: that keeps the mode that its readers need.
func TestARestoredFileHasItsFormerMode(t *testing.T) {
	for inPlace, want := range map[bool]fs.FileMode{false: 0o640, true: 0o644} {
		f := kept(t, inPlace)
		if err := errors.Join(Overwrite(f.Path, []byte("changed\n"), 0o644), os.Remove(f.CopyPath)); err != nil { // the copy is for the next program
			t.Fatal(err)
		}
		if restored, err := f.Restore(); err != nil || !restored {
			t.Errorf("in place %v: %v, %v", inPlace, restored, err)
		}
		expect(t, f.Path, "former\n", want)
	}
}

// TestAFormerFileWithoutACopyIsNotRestored: another program may have changed the file.
func TestAFormerFileWithoutACopyIsNotRestored(t *testing.T) {
	f := &FormerFile{Path: file(t, "former\n", 0o640), Limit: 100}
	f.CopyPath = filepath.Join(f.Path, "copy") // no directory
	if err := f.Keep(); err == nil {
		t.Fatal("it has a copy")
	}
	f.becomes(t, "another\n")
	if restored, err := f.Restore(); restored || err != nil {
		t.Errorf("restored %v, %v", restored, err)
	}
	expect(t, f.Path, "another\n", 0o640)
}

func TestRecoverRestoresOnlyARecentCopyOfAnUnchangedFile(t *testing.T) {
	for name, test := range map[string]struct {
		kept, changed time.Duration
		want          string
	}{
		"recent":                             {0, 0, "former\n"},
		"the change took its whole time":     {-time.Minute, -time.Minute + changedWithin, "former\n"},
		"another program changed it since":   {-time.Minute, -time.Minute + changedWithin + time.Second, "changed\n"},
		"nearly old":                         {-maxFormerAge + time.Minute, -maxFormerAge, "former\n"},
		"old":                                {-maxFormerAge - time.Minute, -maxFormerAge, "changed\n"},
		"nearly old, by a clock ahead":       {maxFormerAge - time.Minute, 0, "former\n"},
		"old, by a clock that was far ahead": {maxFormerAge + time.Minute, 0, "changed\n"},
	} {
		f := kept(t, false)
		f.becomes(t, "changed\n")
		now := time.Now()
		if err := errors.Join(os.Chtimes(f.CopyPath, time.Time{}, now.Add(test.kept)), os.Chtimes(f.Path, time.Time{}, now.Add(test.changed))); err != nil {
			t.Fatal(err)
		}
		next := &FormerFile{Path: f.Path, CopyPath: f.CopyPath, Limit: f.Limit}
		if restored, err := next.Recover(); err != nil || restored != (test.want != "changed\n") {
			t.Errorf("%s: restored %t, %v", name, restored, err)
		}
		if content, err := os.ReadFile(f.Path); err != nil || string(content) != test.want {
			t.Errorf("%s: it has %q (%v), want %q", name, content, err, test.want)
		}
	}
}

func TestRecoverReportsAFileThatIsMissing(t *testing.T) {
	f := kept(t, false)
	if err := os.Remove(f.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Recover(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestDiscardNeedsNoCopy(t *testing.T) {
	f := kept(t, false)
	for range 2 {
		err := f.Discard()
		if _, again := f.Recover(); err != nil || again != nil {
			t.Error(err, again)
		}
	}
	f.CopyPath = filepath.Join(f.Path, "copy") // no directory
	if f.Discard() == nil {
		t.Error("it does not report that the copy cannot be removed")
	}
}
