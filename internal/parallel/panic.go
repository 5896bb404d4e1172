package parallel

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic of another goroutine.
type PanicError struct {
	// Value is what the code panicked with.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte
}

// Error implements error. It includes the stack, which would be lost if the panic is not recovered again.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v\n%s", p.Value, p.Stack) }

// Catch calls f and returns its panic, or nil. A *[PanicError] that is raised again is returned unchanged.
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
