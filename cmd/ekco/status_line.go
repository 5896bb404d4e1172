package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/replicatedhq/ekco/cmd/internal/view"
)

// statusLine is the last line on a terminal. It shows that the command is still running, is overwritten each time, and
// is removed before other output.
type statusLine struct {
	w io.Writer
	// terminal is false if the output is not a terminal; then the line is never shown.
	terminal bool

	mu    sync.Mutex
	shown bool
}

const eraseLine = "\r\x1b[K"

// cutLines makes the terminal cut long lines, and wrapLines undoes that. In a wrapped line, only the last part would be
// overwritten, and the rest would stay on the screen each second.
const (
	cutLines  = "\x1b[?7l"
	wrapLines = "\x1b[?7h"
)

func (s *statusLine) show(text string) {
	if !s.terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = true
	_, _ = fmt.Fprint(s.w, eraseLine+cutLines+view.Clean(text)+wrapLines)
}

func (s *statusLine) clear() {
	_ = s.printAbove(func() error { return nil })
}

// printAbove removes the line and calls f, which may print.
func (s *statusLine) printAbove(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		_, _ = fmt.Fprint(s.w, eraseLine)
	}
	return f()
}
