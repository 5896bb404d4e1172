// Command ekco replaces EKCO in the pods of host tasks that tests create. It executes its arguments one after the
// other, and prints the results.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/replicatedhq/ekco/internal/hosttask"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	for args := os.Args[1:]; len(args) > 1; args = args[2:] {
		switch what, of := args[0], args[1]; what {
		case "log":
			fmt.Println(of)
		case "wait":
			if !wait(of, end) {
				say(nil, fmt.Errorf("asked to end"))
				return
			}
		case "write":
			if err := os.WriteFile(of, make([]byte, 1<<20), 0o600); err != nil {
				say(nil, err)
				return
			}
		case "exit":
			code, _ := strconv.Atoi(of)
			os.Exit(code)
		case "say":
			say(of, nil)
		default:
			fmt.Println("unknown command", what)
			os.Exit(2)
		}
	}
}

// wait waits for a time, or for SIGUSR1. It returns false if the task must end.
func wait(text string, end <-chan os.Signal) bool {
	duration, _ := time.ParseDuration(text)
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGUSR1)
	select {
	case <-time.After(duration):
		return true
	case <-goOn:
		return true
	case <-end:
		return false
	}
}

func say(result any, failed error) {
	_ = hosttask.Say(os.Stdout, result, failed)
}
