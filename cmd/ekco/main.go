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
	// A reader that left, such as head, is an error of the write, not a death:
	// a purge must not end because nobody looks any more.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), newApp(), os.Args[1:]))
}
