package actions

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// panicError is a panic of a capability's code. It fails only the call that panicked: if it ended the process, the next
// process would end at the same step.
type panicError struct{ value any }

// Error implements error.
func (e *panicError) Error() string {
	return fmt.Sprintf("a defect of EKCO: panic: %v; report it with the stack from the log", e.value)
}

// Catch turns a panic into the function's error; defer it. The stack goes into the log, not into the journal. A panic in
// another goroutine is caught only if that goroutine passes it on, as those of package parallel do.
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
	log.Error("panic", "during", during, "panic", value, "stack", string(trimmed(stack)))
}

// maxFrames is how many functions of a stack are logged.
const maxFrames = 12

// trimmed returns at most maxFrames functions of a stack, from the one that panicked.
func trimmed(stack []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(stack), []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte("panic(")) {
			lines = lines[min(i+2, len(lines)):]
			break
		}
	}
	return bytes.Join(lines[:min(2*maxFrames, len(lines))], []byte("\n"))
}
