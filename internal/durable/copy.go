package durable

import "path/filepath"

// Copy copies a file of at most limit bytes to another place, whole or not at all, with its mode,
// its owner and its other attributes. The directory there is made if there is none.
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
	return alone(to, func() error { return swapped(prepare(to, content, like)) })
}
