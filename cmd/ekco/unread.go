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

// unreadTimeout is how long a write of output may block. It is long because a pager that is scrolled back blocks, too.
const unreadTimeout = time.Hour

// unreadGuard ends a command if no reader takes its output. When a client of "kubectl exec" exits, its command stays in
// EKCO's pod. When the pipe is full, the command would wait forever and use memory of the pod.
type unreadGuard struct {
	// mayEnd is true if the command may end, because another process does the work or there is no work.
	mayEnd atomic.Bool
	end    func()
}

// guardedOutput is output with a limit on how long a write may block; see [unreadGuard].
type guardedOutput struct {
	w     io.Writer
	after time.Duration
	by    *unreadGuard
}

func (o *guardedOutput) Write(content []byte) (int, error) {
	waits := time.AfterFunc(o.after, func() {
		if o.by.mayEnd.Load() {
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

// errReaderLeft is the error if the reader of the output has exited, like head. It differs from other broken pipes,
// such as a lost connection to an operator.
var errReaderLeft = errors.New("the reader closed the output")

// endUnread ends the process, with a message on standard error if a reader takes it.
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
