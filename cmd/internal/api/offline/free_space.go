package offline

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// minFreeSpace is the free space in bytes that is enough for almost every event.
const minFreeSpace = 16 << 10

// unwritableReason returns the reason why the journal cannot be written now, or "". It does not try to write, because
// the file is open only for reading.
func unwritableReason(path string) string {
	var fs unix.Statfs_t
	switch err := unix.Statfs(filepath.Dir(path), &fs); {
	case err != nil:
		return ""
	case fs.Flags&unix.ST_RDONLY != 0:
		return "its file system is read-only"
	case int64(fs.Bfree)*fs.Bsize < minFreeSpace:
		return "no space is left on its file system"
	}
	return ""
}
