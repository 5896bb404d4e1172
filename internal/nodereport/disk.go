package nodereport

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Disk is the file system that holds a directory, in bytes.
type Disk struct {
	Directory string `json:"directory"`
	Size      uint64 `json:"size"`
	// Free is how much root can still write.
	Free uint64 `json:"free"`
}

// disk returns the file system of a directory, and whether the directory exists.
func (h Host) disk(directory string) (disk Disk, there bool, err error) {
	if err := h.checkNoLink(directory); err != nil {
		return Disk{}, false, err
	}
	var stat unix.Statfs_t
	err = unix.Statfs(filepath.Join(h.Root, directory), &stat)
	if errors.Is(err, fs.ErrNotExist) {
		return Disk{}, false, nil
	}
	if err != nil {
		return Disk{}, false, fmt.Errorf("read the free space: %w", err)
	}
	block := uint64(stat.Bsize) //nolint:gosec // no file system has a negative one
	return Disk{Directory: directory, Size: stat.Blocks * block, Free: stat.Bfree * block}, true, nil
}

// checkNoLink returns an error if a directory of the host, or a directory above it, is a link: in the pod, the link
// points to nothing, or to a directory of the image.
func (h Host) checkNoLink(directory string) error {
	if above := filepath.Dir(directory); above != directory {
		if err := h.checkNoLink(above); err != nil {
			return err
		}
	}
	target, err := os.Readlink(filepath.Join(h.Root, directory))
	if err != nil || directory == "/" {
		return nil //nolint:nilerr // it is no link, or what is wrong shows where it is read
	}
	return linkError(directory, target)
}

func linkError(path, target string) error {
	return fmt.Errorf("%s is a link to %s, which the report cannot see", path, target)
}

// Kernel returns the release of the kernel that this process shares with its host.
func Kernel() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("read the kernel's release: %w", err)
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}
