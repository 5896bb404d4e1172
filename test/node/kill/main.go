// Command kill replaces /bin/kill in the image of an HAProxy. It supports only what EKCO needs: kill -HUP PROCESS.
package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

func main() {
	if len(os.Args) != 3 || os.Args[1] != "-HUP" {
		fmt.Fprintf(os.Stderr, "kill: %q is not -HUP PROCESS\n", os.Args[1:])
		os.Exit(2)
	}
	process, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = syscall.Kill(process, syscall.SIGHUP)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kill:", err)
		os.Exit(1)
	}
}
