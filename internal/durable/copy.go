package durable

import "path/filepath"

// Copy copies a file of at most limit bytes to another place, whole or not at all, with its mode, owner and other
// attributes. It creates the directory there if it is missing.
func Copy(from, to string, limit int64) error {
	content, err := Read(from, limit)
	if err != nil {
		return err
	}
	like, err := attributesOf(from)
	if err != nil {
		return err
	}
	if err := MakeDirectory(filepath.Dir(to)); err != nil {
		return err
	}
	return withLock(to, func() error { return swapped(prepare(to, content, like)) })
}
