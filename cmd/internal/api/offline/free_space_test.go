package offline

import (
	"path/filepath"
	"testing"
)

func TestAFileSystemWithoutRoomIsNoticedByWhoOnlyReads(t *testing.T) {
	if got := unwritableReason(filepath.Join(t.TempDir(), "journal.db")); got != "" {
		t.Errorf("where there is room it says %q", got)
	}
	// Nothing fits into the file system of processes.
	if got := unwritableReason("/proc/journal.db"); got == "" {
		t.Error("where there is no room it says nothing")
	}
	if got := unwritableReason("/nowhere/journal.db"); got != "" {
		t.Errorf("of a directory that is not there it says %q", got)
	}
}
