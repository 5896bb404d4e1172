package parallel

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that was recovered in another goroutine than the one it
// is handed to.
type PanicError struct {
	// Value is what the code panicked with.
	Value any
	// Stack is that of the goroutine that panicked.
	Stack []byte
}

// Error implements error. It has the stack, which is lost otherwise when nobody
// recovers the panic again.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Catch calls f and returns its panic, or nil. A panic that was caught before
// and raised again is returned as it was.
func Catch(f func()) (caught *PanicError) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case *PanicError:
			caught = value
		default:
			caught = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// Raise panics with p, unless it is nil.
func (p *PanicError) Raise() {
	if p != nil {
		panic(p)
	}
}
