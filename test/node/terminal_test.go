package nodetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/test/await"
)

// terminal is one that a person sits at, and the program on it.
type terminal struct {
	// master is the person's end.
	master  *os.File
	program *exec.Cmd
	reading sync.WaitGroup

	mu     sync.Mutex
	screen bytes.Buffer
}

// onTerminal starts a program on a terminal of 80 columns, which ends with the test.
func onTerminal(t *testing.T, program *exec.Cmd) *terminal {
	t.Helper()
	master, slave := openTerminal(t)
	defer slave.Close()
	s := &terminal{master: master, program: program}
	s.resize(t, 24, 80)
	program.Stdin, program.Stdout, program.Stderr = slave, slave, slave
	program.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	s.reading.Go(s.read)
	t.Cleanup(s.lose)
	return s
}

// openTerminal makes a new terminal. The slave is the program's end.
func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var number int
	ask(t, master, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		}
		return err
	})
	if slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// ask does something with a file's descriptor.
func ask(t *testing.T, file *os.File, what func(fd int) error) {
	t.Helper()
	raw, err := file.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = what(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// read keeps what is written to the terminal, until nobody has its other end open.
func (s *terminal) read() {
	part := make([]byte, 4096)
	for {
		n, err := s.master.Read(part)
		s.mu.Lock()
		s.screen.Write(part[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// shown is all that was written to the terminal.
func (s *terminal) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.String()
}

// awaits waits until the terminal has shown each of the texts.
func (s *terminal) awaits(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		await.Until(t, await.HangTimeout, fmt.Sprintf("the terminal shows %q", text), func() (bool, string) {
			shown := s.shown()
			return strings.Contains(unwrapped(shown), unwrapped(text)), fmt.Sprintf("%q", shown)
		})
	}
}

// unwrapped returns a text on one line: whether EKCO wraps depends on whether kubectl has passed on the terminal's size.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// types types.
func (s *terminal) types(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// resize is what happens when somebody drags the window's corner.
func (s *terminal) resize(t *testing.T, rows, columns uint16) {
	t.Helper()
	ask(t, s.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns})
	})
}

// ends waits until the program has ended and all of its output is read, and returns its exit code.
func (s *terminal) ends(t *testing.T) int {
	t.Helper()
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = s.program.Wait() // how it ended is in ProcessState
		s.reading.Wait()
	}()
	select {
	case <-waited:
	case <-time.After(await.HangTimeout):
		_ = s.program.Process.Kill() // it fails when it has ended
		<-waited
		t.Fatalf("%s did not end; it has shown:\n%q", s.program, s.shown())
	}
	return s.program.ProcessState.ExitCode()
}

// lose kills the program as who closes the window does, and the terminal is gone.
func (s *terminal) lose() {
	if s.program.ProcessState == nil {
		_ = s.program.Process.Kill() // it fails when it has ended
		_ = s.program.Wait()
	}
	_ = s.master.Close() // it fails when that is done
	s.reading.Wait()
}
