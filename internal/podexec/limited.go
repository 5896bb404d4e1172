package podexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// limited is a buffer with a limit. It must not have the buffer's method ReadFrom: [io.Copy] would use it, and
// write past the limit.
type limited struct {
	kept bytes.Buffer
	name string
	kib  int
	stop context.CancelCauseFunc
}

// newLimited returns a buffer of this many KiB. If the output is longer, it calls stop with the error.
func newLimited(name string, kib int, stop context.CancelCauseFunc) *limited {
	return &limited{name: name, kib: kib, stop: stop}
}

var errTooLong = errors.New("wrote too much")

func (l *limited) Write(p []byte) (int, error) {
	if l.kept.Len()+len(p) > l.kib<<10 {
		err := fmt.Errorf("%w: more than %d KiB to %s", errTooLong, l.kib, l.name)
		l.stop(err)
		return 0, err
	}
	return l.kept.Write(p)
}
