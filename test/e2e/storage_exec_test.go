package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/kurl"
)

// bridge stands for what a kubelet does with an exec: it runs the command, here
// the real ceph, and keeps a record of it. The program that the control plane
// starts for each exec is this test binary, which hands the command to the
// bridge and waits; see [runAsHandler]. So the command goes on when the exec is
// broken off, as it does in a pod.
type bridge struct {
	// Program is what the control plane is to start for each exec.
	Program string
	// interrupt is told of each command that changes something.
	interrupt *interrupter

	listener net.Listener
	cephConf string
	ended    sync.WaitGroup
	// running bounds the commands; stop ends them.
	running context.Context
	stop    context.CancelFunc

	mu    sync.Mutex
	calls []execCall
	open  map[net.Conn]bool
}

// execCall is one command that was run in a pod.
type execCall struct {
	Pod, Container string
	// Ceph are the words of the ceph command, without options of the program.
	Ceph         []string
	Began, Ended time.Time
	ExitCode     int
	// Refused says why nothing was run.
	Refused string
}

func (c execCall) String() string {
	return fmt.Sprintf("%s +%5.2fs exit %d: ceph %s %s", c.Began.Format("15:04:05.000"), c.Ended.Sub(c.Began).Seconds(),
		c.ExitCode, strings.Join(c.Ceph, " "), c.Refused)
}

// changes reports whether the command changes something.
func (c execCall) changes() bool {
	reads := [][]string{{"status"}, {"version"}, {"osd", "tree"}, {"osd", "dump"}, {"osd", "safe-to-destroy"}, {"osd", "crush", "rule", "dump"}, {"pg", "dump"}}
	return !slices.ContainsFunc(reads, func(read []string) bool {
		return len(c.Ceph) >= len(read) && slices.Equal(c.Ceph[:len(read)], read)
	})
}

// execRequest and execAnswer pass between the program and the bridge.
type execRequest struct {
	Argv                      []string
	Namespace, Pod, Container string
}

// execAnswer is all that a command has to say or, unless Over is set, a part of it.
type execAnswer struct {
	Stdout, Stderr []byte
	ExitCode       int
	Over           bool
}

const socketVariable = "EKCO_TEST_EXEC_SOCKET"

// newBridge returns a bridge to no Ceph yet.
func newBridge(t *testing.T) *bridge {
	t.Helper()
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "ekco-exec-")
	if err != nil {
		t.Fatal(err)
	}
	b := &bridge{Program: filepath.Join(dir, "exec"), interrupt: &interrupter{}, open: make(map[net.Conn]bool)}
	socket := filepath.Join(dir, "socket")
	if b.listener, err = new(net.ListenConfig).Listen(t.Context(), "unix", socket); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", socketVariable, socket, self)
	if err := os.WriteFile(b.Program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	b.running, b.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	b.ended.Go(b.serve)
	t.Cleanup(func() {
		b.close()
		if t.Failed() {
			t.Logf("the last commands that were run in pods:\n%s", b.tail(40))
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bridge) close() {
	b.stop()
	b.interrupt.disarm()
	_ = b.listener.Close()
	b.mu.Lock()
	for conn := range b.open {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.ended.Wait()
}

func (b *bridge) serve() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.mu.Lock()
		b.open[conn] = true
		b.mu.Unlock()
		b.ended.Go(func() {
			b.answer(conn)
			b.mu.Lock()
			delete(b.open, conn)
			b.mu.Unlock()
			_ = conn.Close()
		})
	}
}

func (b *bridge) answer(conn net.Conn) {
	var request execRequest
	decoder := json.NewDecoder(conn)
	if err := decoder.Decode(&request); err != nil {
		return
	}
	if request.converses() {
		b.converse(request, io.MultiReader(decoder.Buffered(), conn), json.NewEncoder(conn))
		return
	}
	if answer, ok := b.run(request); ok {
		// The program may be gone with the exec.
		_ = json.NewEncoder(conn).Encode(answer)
	}
}

// run runs the command, unless EKCO is killed before. No answer is what an exec
// gets that was broken off.
func (b *bridge) run(request execRequest) (answer execAnswer, ok bool) {
	call := execCall{Pod: request.Pod, Container: request.Container, Began: time.Now()}
	var err error
	if call.Ceph, err = cephWords(request); err != nil {
		call.Refused, call.ExitCode, call.Ended = err.Error(), 126, call.Began
		b.record(call)
		return execAnswer{Stderr: []byte(err.Error()), ExitCode: call.ExitCode, Over: true}, true
	}
	place := "ceph " + strings.Join(call.Ceph, " ")
	if call.changes() && b.interrupt.before(place) {
		return execAnswer{}, false
	}
	var stdout, stderr bytes.Buffer
	cmd := b.command(request)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	call.Ended, call.ExitCode = time.Now(), cmd.ProcessState.ExitCode()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		call.Refused = err.Error()
	}
	b.record(call)
	if call.changes() && b.interrupt.after(place) {
		return execAnswer{}, false
	}
	return execAnswer{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: call.ExitCode, Over: true}, true
}

// command ends with the bridge, and with it the ceph that "timeout" has started: that would keep the output open,
// and may never end by itself.
func (b *bridge) command(request execRequest) *exec.Cmd {
	cmd := exec.CommandContext(b.running, request.Argv[0], request.Argv[1:]...)
	cmd.Env = append(os.Environ(), "CEPH_CONF="+b.cephConf)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// cephWords returns the ceph command, if it may be run there.
func cephWords(request execRequest) ([]string, error) {
	if request.Namespace != "rook-ceph" || !strings.HasPrefix(request.Pod, kurl.ToolsPod) || request.Container != kurl.ToolsPod {
		return nil, fmt.Errorf("exec into %s/%s, container %s: only the tools pod has ceph", request.Namespace, request.Pod, request.Container)
	}
	argv := request.Argv
	if request.converses() {
		argv = argv[2:]
	}
	if len(argv) > 4 && argv[0] == "timeout" && argv[1] == "-k" {
		argv = argv[4:]
	}
	if len(argv) == 0 || argv[0] != "ceph" {
		return nil, fmt.Errorf("exec of %q: only ceph is there", request.Argv)
	}
	argv = argv[1:]
	for len(argv) > 1 && (argv[0] == "--connect-timeout" || argv[0] == "-f") {
		argv = argv[2:]
	}
	return argv, nil
}

func (b *bridge) record(call execCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, call)
}

// changes returns the ceph commands that changed something, since a mark. A command that failed and was
// repeated, also by force, is there once: EKCO repeats what Ceph answers too late, and Ceph may refuse to purge an
// OSD as long as it moves data.
func (b *bridge) changes(since mark) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var changes []string
	failed := make(map[string]bool)
	for _, call := range b.calls[since:] {
		if !call.changes() {
			continue
		}
		command := strings.TrimSuffix(strings.Join(call.Ceph, " "), " --yes-i-really-mean-it")
		if !failed[command] {
			changes = append(changes, command)
		}
		failed[command] = call.ExitCode != 0
	}
	return changes
}

// refused returns what was asked for that EKCO has no business with.
func (b *bridge) refused() []execCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.calls), func(call execCall) bool { return call.Refused == "" })
}

// mark is a moment in the record.
type mark int

func (b *bridge) mark() mark {
	b.mu.Lock()
	defer b.mu.Unlock()
	return mark(len(b.calls))
}

// spent says what the calls since a mark took, in all and of the clock.
func (b *bridge) spent(since mark) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var spans []span
	for _, call := range b.calls[since:] {
		spans = append(spans, span{call.Began, call.Ended})
	}
	return fmt.Sprintf("%d calls of ceph, %s in all, within %s", len(spans),
		sumOf(spans).Round(time.Millisecond), clockOf(spans).Round(time.Millisecond))
}

func (b *bridge) tail(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines strings.Builder
	for _, call := range b.calls[max(0, len(b.calls)-n):] {
		fmt.Fprintln(&lines, call)
	}
	return lines.String()
}

// runAsHandler is what this binary does when the control plane starts it: it has
// the bridge at the socket run its arguments.
func runAsHandler(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 126
	}
	defer conn.Close()
	request := execRequest{
		Argv: os.Args[1:], Namespace: os.Getenv("POD_NAMESPACE"), Pod: os.Getenv("POD_NAME"), Container: os.Getenv("CONTAINER"),
	}
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 126
	}
	// It has none, unless EKCO talks with the command.
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	for decoder := json.NewDecoder(conn); ; {
		var answer execAnswer
		if err := decoder.Decode(&answer); err != nil {
			fmt.Fprintln(os.Stderr, "the command was broken off:", err)
			return 126
		}
		_, _ = os.Stdout.Write(answer.Stdout)
		_, _ = os.Stderr.Write(answer.Stderr)
		if answer.Over {
			return answer.ExitCode
		}
	}
}
