package actions

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// panicError is a panic in a capability's code. It fails only the call that panicked: if it ended the process, EKCO
// would crash at the same step after each restart.
type panicError struct{ value any }

func (e *panicError) Error() string {
	return fmt.Sprintf("a defect of EKCO: panic: %v; report it with the stack from the log", e.value)
}

// Catch turns a panic into the function's error; defer it. It writes the stack to the log, not to the journal. It
// catches a panic of another goroutine only if that goroutine passes the panic on, as the goroutines of package
// parallel do.
func Catch(log *slog.Logger, during string, err *error) {
	value := recover()
	if value == nil {
		return
	}
	stack := debug.Stack()
	if elsewhere, ok := value.(*parallel.PanicError); ok {
		value, stack = elsewhere.Value, elsewhere.Stack
	}
	*err = &panicError{value}
	log.Error("panic", "during", during, "panic", value, "stack", string(trimStack(stack)))
}

// maxFrames is the maximum number of functions that are logged from a stack.
const maxFrames = 12

// trimStack returns at most maxFrames functions of a stack, starting with the function that panicked.
func trimStack(stack []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(stack), []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("panic(")) {
			lines = lines[min(i+2, len(lines)):]
			break
		}
	}
	return bytes.Join(lines[:min(2*maxFrames, len(lines))], []byte("\n"))
}
