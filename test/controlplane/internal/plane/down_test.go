package plane

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// sleeper starts a process that does nothing, and ends it with the test.
func sleeper(t *testing.T) started {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // killed
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the test may have done so
		<-done
	})
	id, err := identify("etcd", cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestDownKillsWhatIsLeftWithoutASupervisor(t *testing.T) {
	dir, left := Dir(t.TempDir()), sleeper(t)
	if err := dir.writePids(running{Boot: bootID(), Processes: []started{left}}); err != nil {
		t.Fatal(err)
	}
	ended, err := Down(t.Context(), dir)
	if err != nil || ended != 1 {
		t.Errorf("Down ended %d processes, error %v: want 1", ended, err)
	}
	if left.alive() {
		t.Error("the process still runs")
	}
}

func TestDownSparesAnotherProcessWithAReusedPID(t *testing.T) {
	other := sleeper(t)
	reused := other
	reused.Start--
	tests := map[string]running{
		"started at another time": {Boot: bootID(), Processes: []started{reused}},
		"recorded before a boot":  {Boot: "another boot", Processes: []started{other}},
	}
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			dir := Dir(t.TempDir())
			if err := dir.writePids(r); err != nil {
				t.Fatal(err)
			}
			ended, err := Down(t.Context(), dir)
			if err != nil || ended != 0 {
				t.Errorf("Down ended %d processes, error %v: want none", ended, err)
			}
			if err := reused.signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			if !other.alive() {
				t.Error("the other process was killed")
			}
		})
	}
}

func TestDownOfACorruptListNamesTheFile(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := writeFile(dir.pids(), "{"); err != nil {
		t.Fatal(err)
	}
	if _, err := Down(t.Context(), dir); err == nil || !strings.Contains(err.Error(), dir.pids()) {
		t.Errorf("Down gave %v: want an error that names %s", err, dir.pids())
	}
}
