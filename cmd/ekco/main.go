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
	// With SIGPIPE ignored, an early exit of the reader (such as head) causes a write error and does not kill the
	// process. A purge must not end because of that.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(context.Background(), newApp(), os.Args[1:]))
}
