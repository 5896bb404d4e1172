package files

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace durably gives a synced file its final name.
func Replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDirectory(filepath.Dir(to))
}

// SyncDirectory makes the names in a directory durable.
func SyncDirectory(name string) error {
	directory, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
