// Command ekco stands for EKCO in the pods of host tasks that tests make: it does what its
// arguments say, one after the other, and says what came of it.
package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
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
		case "serve":
			serve(of, end)
		case "say":
			say(of, nil)
		}
	}
}

// wait reports whether the time has passed.
func wait(text string, end <-chan os.Signal) bool {
	duration, _ := time.ParseDuration(text)
	select {
	case <-time.After(duration):
		return true
	case <-end:
		return false
	}
}

// serve stands for a component of the control plane: it reads a file when it starts, and says at an
// address which it was, until it is asked to end. With a file "broken" beside it, it does not start.
func serve(text string, end <-chan os.Signal) {
	address, path, _ := strings.Cut(text, "=")
	content, err := os.ReadFile(path)
	if _, broken := os.Stat(filepath.Join(filepath.Dir(path), "broken")); broken == nil || err != nil {
		fmt.Println("I cannot go on")
		os.Exit(1)
	}
	sum := sha256.Sum256(content)
	server := &http.Server{Addr: address, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "%x", sum)
	})}
	go func() {
		<-end
		_ = server.Close()
	}()
	fmt.Println(server.ListenAndServe())
	os.Exit(0)
}

func say(result any, failed error) {
	_ = hosttask.Say(os.Stdout, result, failed)
}
