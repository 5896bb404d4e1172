package offline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/replicatedhq/ekco/journal"
)

// Advise says what a person who typed a command can do about an error of the
// journal's file. Other errors, and nil, stay as they are.
func Advise(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return forbidden{path, err}
	case errors.Is(err, journal.ErrUnverified):
		return fmt.Errorf("%w; ask again", err)
	case errors.Is(err, journal.ErrDamaged):
		return fmt.Errorf("%w; start the operator: it sets the file aside, keeps what is readable, and acts on nothing until \"ekco journal accept\"", err)
	}
	return err
}

// forbidden is an error of a file that is not for this user, in words for a
// person. What the system calls it reads as if the journal were in trouble.
type forbidden struct {
	path string
	err  error
}

func (e forbidden) Error() string {
	return fmt.Sprintf("only root and EKCO's own user may use journal %s; run this as root", e.path)
}
func (e forbidden) Unwrap() error { return e.err }
