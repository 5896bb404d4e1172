package offline

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// leastRoom is more than almost every event needs.
const leastRoom = 16 << 10

// noRoom says why nothing can be written to the journal now, or returns "". The file is open for reading, so it does
// not try to write.
func noRoom(path string) string {
	var fs unix.Statfs_t
	switch err := unix.Statfs(filepath.Dir(path), &fs); {
	case err != nil:
		return ""
	case fs.Flags&unix.ST_RDONLY != 0:
		return "its file system is read-only"
	case int64(fs.Bfree)*fs.Bsize < leastRoom:
		return "no space is left on its file system"
	}
	return ""
}
