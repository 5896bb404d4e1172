package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/replicatedhq/ekco/journal"
)

// Advise adds advice to an error of the journal's file. It returns nil and other errors unchanged.
func Advise(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return forbidden{path, err}
	case errors.Is(err, journal.ErrUnverified):
		return fmt.Errorf("%w; run the command again", err)
	case errors.Is(err, journal.ErrDamaged):
		return fmt.Errorf("%w; start the operator: it renames the file, keeps what is readable, and only observes until \"ekco journal accept\"", err)
	}
	return err
}

// forbidden replaces the text of a permission error, which sounds as if the journal were damaged.
type forbidden struct {
	path string
	err  error
}

func (e forbidden) Error() string {
	return fmt.Sprintf("only root and EKCO's own user may use journal %s; run this as root", e.path)
}
func (e forbidden) Unwrap() error { return e.err }
