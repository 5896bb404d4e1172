package files

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace renames a file and syncs the directory. The content of the file must be synced already.
func Replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDirectory(filepath.Dir(to))
}

// SyncDirectory syncs a directory, so that the names of its files survive a crash.
func SyncDirectory(name string) error {
	directory, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
