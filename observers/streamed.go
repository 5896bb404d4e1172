package observers

import (
	"errors"
	"fmt"
	"time"
)

const (
	// streamTimeout is how long a streamed list may take. The server marks its end; without that mark, EKCO would
	// wait until the server closes the stream: minutes without an error and without facts.
	streamTimeout = 15 * time.Second
	// streamAgain is how long lists are read in pages after that.
	streamAgain = 5 * time.Minute
)

// errPages makes the Reflector read a list in pages, each of which has a timeout.
var errPages = errors.New("lists are read in pages for now")

// mayStream reports whether a list may be streamed now.
func (f *Feed) mayStream() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().After(f.pagesUntil)
}

// bePatient starts the timeout of a streamed list.
func (f *Feed) bePatient() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endTimeout()
	f.late = time.AfterFunc(streamTimeout, f.streamedTooLong)
}

// endTimeout expects that mu is held.
func (f *Feed) endTimeout() {
	if f.late != nil {
		f.late.Stop()
		f.late = nil
	}
}

// streamedTooLong starts a new round, which reads pages. It may run just after the list was complete; then the list
// is read again.
func (f *Feed) streamedTooLong() {
	f.mu.Lock()
	f.pagesUntil = time.Now().Add(streamAgain)
	f.mu.Unlock()
	f.gate.log.Info("a streamed list did not end in time: EKCO reads pages for a while",
		"what", f.name, "waited", streamTimeout, "for", streamAgain)
	f.failed(fmt.Errorf("the API server did not finish a streamed list of %s within %s", f.name, streamTimeout))
	f.restart()
}
