package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/replicatedhq/ekco/cmd/internal/view"
)

// signOfLife is a terminal's last line, on which a person sees that something
// goes on. It is overwritten, and gone when something is printed.
type signOfLife struct {
	w io.Writer
	// terminal is unset where nothing can be overwritten: nothing is shown there.
	terminal bool

	mu    sync.Mutex
	shown bool
}

const eraseLine = "\r\x1b[K"

// What is longer than the line is cut by the terminal: of a line that it wrapped only the
// last part would be overwritten, and each second would leave the rest on the screen.
const (
	cutLines  = "\x1b[?7l"
	wrapLines = "\x1b[?7h"
)

// show puts the text in the place of the last one.
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

// away removes the line and runs f, which prints, while it is gone.
func (s *signOfLife) away(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		s.shown = false
		_, _ = fmt.Fprint(s.w, eraseLine)
	}
	return f()
}
