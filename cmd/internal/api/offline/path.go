package offline

import "strings"

// withoutPath returns err with a text that speaks of "the export" instead of the
// path where EKCO keeps a copy of it, which tells nobody anything. Nil stays nil.
func withoutPath(err error, path string) error {
	if err == nil {
		return nil
	}
	return pathless{err, path}
}

type pathless struct {
	error
	path string
}

func (e pathless) Error() string { return strings.ReplaceAll(e.error.Error(), e.path, "the export") }
func (e pathless) Unwrap() error { return e.error }
