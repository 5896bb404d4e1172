package execserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	utilexec "k8s.io/utils/exec"
)

// sink keeps what is written to it.
type sink struct {
	bytes.Buffer
	closed bool
}

func (s *sink) Close() error {
	s.closed = true
	return nil
}

// shell is an execution of a shell, which takes its script as an argument.
func shell() *execution {
	return &execution{program: "/bin/sh", container: container{"ns", "pod-1", "app"}}
}

func TestAProgramGetsItsInputAndTheContainersNamesAndNothingElse(t *testing.T) {
	t.Setenv("SECRET", "x")
	e, out := shell(), &sink{}
	err := e.run(t.Context(), []string{"-c", `cat; echo " $POD_NAMESPACE $POD_NAME $CONTAINER $SECRET${PATH:+path}"`},
		streams{stdin: strings.NewReader("input"), stdout: out})
	e.wait()
	if err != nil {
		t.Error(err)
	}
	if want := "input ns pod-1 app path\n"; out.String() != want || !out.closed {
		t.Errorf("the program wrote %q, closed %t: want %q, closed", out.String(), out.closed, want)
	}
}

func TestAProgramsEndIsToldByItsCode(t *testing.T) {
	for script, want := range map[string]int{"exit 2": 2, "exit 39": 39, "kill -9 $$": 137, "kill -15 $$": 143} {
		e := shell()
		var exit utilexec.CodeExitError
		if err := e.run(t.Context(), []string{"-c", script}, streams{}); !errors.As(err, &exit) || exit.Code != want {
			t.Errorf("%s: error %v, want code %d", script, err, want)
		}
		e.wait()
	}
}

func TestAProgramThatCannotStartIsNamed(t *testing.T) {
	e := &execution{program: "/no/such/program"}
	err := e.run(t.Context(), nil, streams{stdin: strings.NewReader("x"), stdout: &sink{}})
	e.wait()
	if err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("got %v", err)
	}
}

func TestTheEndOfAProgramIsNotHeldUpByItsChildrenOrItsInput(t *testing.T) {
	e, out := shell(), &sink{}
	input, client := io.Pipe()
	err := e.run(t.Context(), []string{"-c", "sleep 600 & echo done"}, streams{stdin: input, stdout: out})
	if err != nil || out.String() != "done\n" {
		t.Errorf("the program wrote %q (%v)", out.String(), err)
	}
	if err := client.Close(); err != nil { // the connection's end
		t.Fatal(err)
	}
	e.wait()
}

func TestTheEndOfTheContextKillsAProgramAndItsChildren(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	e := shell()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the node is lost")
	done := make(chan error, 1)
	go func() {
		done <- e.run(ctx, []string{"-c", `trap "" TERM; exec 3>"$0"; sleep 600 & sleep 600`, fifo}, streams{stdout: &sink{}})
	}()
	alive, err := os.Open(fifo) // waits for the program to open it, too
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Errorf("run gave %v: want %v", err, reason)
	}
	e.wait()
	if _, err := io.ReadAll(alive); err != nil { // ends when no process has it open
		t.Error(err)
	}
}
