package podexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// limited keeps what is written to it, up to a limit. It has no method ReadFrom,
// as its buffer has: [io.Copy] would use it, and write past the limit.
type limited struct {
	kept bytes.Buffer
	name string
	kib  int
	stop context.CancelCauseFunc
}

// newLimited returns a buffer for that many KiB. More than that is not kept, and
// stop is told why.
func newLimited(name string, kib int, stop context.CancelCauseFunc) *limited {
	return &limited{name: name, kib: kib, stop: stop}
}

var errTooLong = errors.New("wrote more than is kept")

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	if l.kept.Len()+len(p) > l.kib<<10 {
		err := fmt.Errorf("%w: more than %d KiB to %s", errTooLong, l.kib, l.name)
		l.stop(err)
		return 0, err
	}
	return l.kept.Write(p)
}
