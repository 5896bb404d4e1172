package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/replicatedhq/ekco/cmd/internal/view"
)

// signOfLife is the last line of a terminal, which shows that the command still runs. It is overwritten, and removed
// before other output.
type signOfLife struct {
	w io.Writer
	// terminal is unset if the output is not a terminal; then it shows nothing.
	terminal bool

	mu    sync.Mutex
	shown bool
}

const eraseLine = "\r\x1b[K"

// The terminal cuts lines that are too long. If it wrapped them, only the last part would be overwritten, and the
// rest would stay on the screen each second.
const (
	cutLines  = "\x1b[?7l"
	wrapLines = "\x1b[?7h"
)

// show replaces the line.
func (s *signOfLife) show(text string) {
	if !s.terminal {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = true
	_, _ = fmt.Fprint(s.w, eraseLine+cutLines+view.Clean(text)+wrapLines)
}

// clear removes the line.
func (s *signOfLife) clear() {
	_ = s.away(func() error { return nil })
}

// away removes the line and runs f, which may print.
func (s *signOfLife) away(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		_, _ = fmt.Fprint(s.w, eraseLine)
	}
	return f()
}
