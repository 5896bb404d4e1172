package offline

import "strings"

// withoutPath returns err with "the export" in place of the path of EKCO's temporary copy. It returns nil for nil.
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
