package observers

import (
	"errors"
	"fmt"
	"time"
)

const (
	// streamTimeout limits a streamed list. The server marks the end of the list. Without a timeout EKCO would wait for
	// a missing mark until the server closes the stream: minutes without an error and without facts.
	streamTimeout = 15 * time.Second
	// pagesDuration is how long lists are read in pages after such a timeout.
	pagesDuration = 5 * time.Minute
)

// errPages makes the Reflector read a list in pages, because each page has its own timeout.
var errPages = errors.New("lists are read in pages for now")

// mayStream reports whether a list may be streamed now.
func (f *Feed) mayStream() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().After(f.pagesUntil)
}

// startStreamTimeout starts the timeout of a streamed list.
func (f *Feed) startStreamTimeout() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopStreamTimeout()
	f.streamTimer = time.AfterFunc(streamTimeout, f.onStreamTimeout)
}

// stopStreamTimeout stops the timeout. The caller must hold mu.
func (f *Feed) stopStreamTimeout() {
	if f.streamTimer != nil {
		f.streamTimer.Stop()
		f.streamTimer = nil
	}
}

// onStreamTimeout starts a new round, which reads pages. It may run just after the list was complete; the list is then
// read once more.
func (f *Feed) onStreamTimeout() {
	f.mu.Lock()
	f.pagesUntil = time.Now().Add(pagesDuration)
	f.mu.Unlock()
	f.gate.log.Info("a streamed list did not end in time: EKCO reads pages for a while",
		"what", f.name, "waited", streamTimeout, "for", pagesDuration)
	f.failed(fmt.Errorf("the API server did not finish a streamed list of %s within %s", f.name, streamTimeout))
	f.restart()
}
