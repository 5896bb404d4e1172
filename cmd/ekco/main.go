// Command ekco keeps a kURL cluster alive. See `ekco --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the image has none, and "history --local" asks for it
)

func main() {
	// Ignore SIGPIPE: an early exit of the reader (such as head) then causes a write error. It must not kill a process
	// that purges a node.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), newApp(), os.Args[1:]))
}
