package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/cmd/internal/api"
)

// asNobody runs f without the right to the files in dir, also where the tests
// run as root: to the kernel, a thread can be another user.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	for _, open := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(open, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Chmod(file, 0); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Never unlocked: the thread ends with the goroutine, and with it what it was.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), 65534, ^uintptr(0)); errno != 0 {
				t.Errorf("become another user: %v", errno)
				return
			}
		}
		f()
	}()
	<-done
}

func TestWithoutRootAndOperatorEveryCommandSaysToRunItAsRoot(t *testing.T) {
	for _, typed := range []string{
		"status", "history", "journal stat", "journal verify", "journal export -", "pause --reason r", "resume", "retry a", "cancel a", "journal accept",
	} {
		d := newDesk(t, nil)
		path := written(t, d)
		asNobody(t, d.dir, func() {
			d.expect(d.types(strings.Fields(typed)...), exitFailed, "", "only root and EKCO's own user may use journal "+path+"; run this as root")
		})
		for _, wrong := range []string{"cannot be written", "damaged"} {
			if strings.Contains(d.errOut.String()+d.out.String(), wrong) {
				t.Errorf("%s: speaks of a journal that is %q: %s%s", typed, wrong, d.out, d.errOut)
			}
		}
	}
}

func TestWithoutRootAPurgeSaysToRunItAsRoot(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	d.app.work = startRing
	asNobody(t, d.dir, func() {
		d.expect(d.types("purge-node", "worker-2"), exitFailed, "", "run this as root")
	})
	if strings.Contains(d.errOut.String(), "0700") {
		t.Errorf("gives advice for an operator: %s", d.errOut)
	}
}

func TestWithoutRootAnOperatorIsStillToldWhatDirectoryItNeeds(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	asNobody(t, d.dir, func() {
		d.expect(d.types("operator"), exitFailed, "", "EKCO needs a writable directory with mode 0700 that its own user owns")
	})
}

func TestASocketThatIsNotForThisUserIsNoReasonToReadTheFile(t *testing.T) {
	d := newDesk(t, nil)
	written(t, d)
	d.app.dial = func(context.Context, string, string) (operator, error) {
		return nil, fmt.Errorf("call the operator on x: %w", api.ErrForbidden)
	}
	d.expect(d.types("status"), exitFailed, "", "run this as root")
}
