package actions

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/replicatedhq/ekco/internal/parallel"
)

// panicError is a panic of a kind's code. It fails what panicked and nothing
// else: a panic that ended the process would end the next one at the same step.
type panicError struct{ value any }

// Error implements error.
func (e *panicError) Error() string {
	return fmt.Sprintf("a defect of EKCO: panic: %v; report it with the stack from the log", e.value)
}

// Catch makes a panic the function's error. Defer it. The stack is logged and
// does not go into the journal. It covers only goroutines that hand their panics
// on, as those of package parallel do.
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

// trimmed leaves out of a stack what is above the panic, and its far end.
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
