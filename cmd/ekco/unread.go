package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// unreadPatience is how long output may wait for somebody who takes it. Who scrolls back in a
// pager lets it wait as well.
const unreadPatience = time.Hour

// unread ends a command whose output nobody takes. When a client of "kubectl exec" is gone, its
// command stays in EKCO's pod and is told nothing. Once the pipe is full, it would wait there for
// ever, with its share of the memory that the pod may have.
type unread struct {
	// ends is set once the command may end: others do the work, if there is any.
	ends atomic.Bool
	end  func()
}

// takenOutput is output that an [unread] looks after.
type takenOutput struct {
	w     io.Writer
	after time.Duration
	by    *unread
}

// Write implements io.Writer.
func (o *takenOutput) Write(content []byte) (int, error) {
	waits := time.AfterFunc(o.after, func() {
		if o.by.ends.Load() {
			o.by.end()
		}
	})
	defer waits.Stop()
	n, err := o.w.Write(content)
	if errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w: %w", errReaderLeft, err)
	}
	return n, err
}

// errReaderLeft tells a pipe of the output whose reader has left, as head does, from any other
// that broke, such as the connection to an operator that ends.
var errReaderLeft = errors.New("the reader closed the output")

// endUnread ends the process. Where standard error is read, it says so.
func endUnread() {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = fmt.Fprintf(os.Stderr, "ekco: nobody has taken the output for %s, so this command ends; an operator that was asked for something goes on\n", unreadPatience)
	}()
	select {
	case <-said:
	case <-time.After(time.Second):
	}
	os.Exit(exitFailed)
}
