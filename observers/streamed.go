package observers

import (
	"errors"
	"fmt"
	"time"
)

const (
	// streamPatience is how long a streamed list may take. The server marks its
	// end, and one that does not would be waited for as long as it keeps the
	// stream open: minutes, in which nothing fails and nothing is known.
	streamPatience = 15 * time.Second
	// streamAgain is how long lists are read in pages after that.
	streamAgain = 5 * time.Minute
)

// errPages has the Reflector read a list in pages, each of which has a time limit.
var errPages = errors.New("lists are read in pages for now")

// mayStream reports whether a list may be streamed now.
func (f *Feed) mayStream() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().After(f.pagesUntil)
}

// bePatient gives a streamed list the time it may take.
func (f *Feed) bePatient() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endPatience()
	f.late = time.AfterFunc(streamPatience, f.streamedTooLong)
}

// endPatience expects mu to be held.
func (f *Feed) endPatience() {
	if f.late != nil {
		f.late.Stop()
		f.late = nil
	}
}

// streamedTooLong begins a new round, which reads pages. It may come a moment
// after the list was complete; then the list is read once more.
func (f *Feed) streamedTooLong() {
	f.mu.Lock()
	f.pagesUntil = time.Now().Add(streamAgain)
	f.mu.Unlock()
	f.gate.log.Info("a streamed list does not come to its end: read in pages for a while",
		"what", f.name, "waited", streamPatience, "for", streamAgain)
	f.failed(fmt.Errorf("the API server streamed no whole list of %s within %s", f.name, streamPatience))
	f.restart()
}
