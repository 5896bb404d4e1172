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

// unreadTimeout is how long a write of output may block. It is long because scrolling back in a pager blocks it too.
const unreadTimeout = time.Hour

// unread ends a command whose output is not read. When a client of "kubectl exec" exits, its command stays in EKCO's
// pod without notice. Once the pipe is full, it would wait there forever, and use memory of the pod.
type unread struct {
	// ends is set once the command may end: another process does the work, if there is any.
	ends atomic.Bool
	end  func()
}

// takenOutput is output whose writes [unread] limits.
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

// errReaderLeft is the error of output whose reader has exited, like head. Other pipes can break too, such as the
// connection to an operator.
var errReaderLeft = errors.New("the reader closed the output")

// endUnread ends the process, with a message on standard error if that is read.
func endUnread() {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = fmt.Fprintf(os.Stderr, "ekco: nothing has read the output for %s, so this command ends; the operator continues its requests\n", unreadTimeout)
	}()
	select {
	case <-said:
	case <-time.After(time.Second):
	}
	os.Exit(exitFailed)
}
