package child_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

const limit = time.Minute

// parentVariable makes the test binary a parent that starts a child and waits.
const parentVariable = "EKCO_TEST_PARENT"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAChildsExitCodeOutputAndEnvironmentAreKept(t *testing.T) {
	p := child.StartWith(t, []string{"GREETING=hello"}, "sh", "-c", "echo $GREETING; echo oh >&2; exit 3")
	if code := p.Wait(limit); code != 3 || p.Running() {
		t.Errorf("exit %d, running %t", code, p.Running())
	}
	if p.Output.String() != "hello\noh\n" || p.Output.Tail(3) != "oh\n" {
		t.Errorf("output %q", p.Output)
	}
}

func TestAChildEndsWithItsTest(t *testing.T) {
	var p *child.Process
	t.Run("of its own", func(t *testing.T) {
		p = child.Start(t, "sleep", "1000")
		if !p.Running() || syscall.Kill(p.PID(), 0) != nil {
			t.Error("it does not run")
		}
	})
	if p.Running() {
		t.Error("it runs on")
	}
}

func TestAStoppedChildMayEndInPeace(t *testing.T) {
	p := child.Start(t, "sh", "-c", "trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.1; done")
	await.Until(t, limit, "it listens", func() (bool, string) {
		return strings.Contains(p.Output.String(), "ready"), p.Output.String()
	})
	if took := p.Stop(limit); took > limit || !strings.Contains(p.Output.String(), "bye") {
		t.Errorf("it ended after %s and said %q", took, p.Output)
	}
}

func TestAKilledParentTakesItsChildrenWithIt(t *testing.T) {
	if os.Getenv(parentVariable) != "" {
		p := child.Start(t, "sleep", "1000")
		_, _ = os.Stderr.WriteString("child " + strconv.Itoa(p.PID()) + ".\n")
		p.Wait(limit)
		return
	}
	parent := child.StartWith(t, []string{parentVariable + "=1"}, os.Args[0], "-test.run=^"+t.Name()+"$")
	pid := 0
	await.Until(t, limit, "the parent has a child", func() (bool, string) {
		_, after, _ := strings.Cut(parent.Output.String(), "child ")
		text, _, found := strings.Cut(after, ".")
		pid, _ = strconv.Atoi(text)
		return found && pid > 0, parent.Output.String()
	})
	parent.Kill()
	await.Until(t, limit, "the child has ended", func() (bool, string) { return ended(pid), "" })
}

// logged is a test whose log can be read.
type logged struct {
	testing.TB
	log strings.Builder
}

func (l *logged) Logf(format string, args ...any) { fmt.Fprintf(&l.log, format, args...) }

func TestCPUTimeOfEndedAndKilledProgramsIsLogged(t *testing.T) {
	l := &logged{}
	const burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
	t.Run("programs", func(t *testing.T) {
		l.TB = t
		child.Start(l, "sh", "-c", burn).Wait(limit)
		p := child.Start(l, "sh", "-c", "("+burn+"; echo done; exec sleep 1000) & wait")
		await.Until(t, limit, "the child of the child has used CPU time", func() (bool, string) {
			return strings.Contains(p.Output.String(), "done"), p.Output.String()
		})
		p.Kill()
	})
	var ended, killed float64
	if n, err := fmt.Sscanf(l.log.String(), "CPU time of programs: %f s ended, %f s killed", &ended, &killed); n != 2 || ended <= 0 || killed <= 0 {
		t.Errorf("%v: the log is %q", err, &l.log)
	}
}

// ended reports whether a process is gone, or a zombie that nobody reaps.
func ended(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}
