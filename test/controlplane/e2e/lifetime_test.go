package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// empty starts a control plane without nodes, which is quicker.
var empty = []string{"--primaries", "0", "--workers", "0"}

func TestDownEndsADetachedControlPlaneAndCanBeRepeated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	t.Cleanup(func() { expectNoProcess(t, dir) })
	output := run(t, append([]string{"up", "--detach", "--dir", dir, "--exec-handler", handler(t)}, empty...)...)
	t.Cleanup(func() { _, _ = exec.Command(binary, "down", "--dir", dir).CombinedOutput() })
	if !strings.HasSuffix(output, "KUBECONFIG="+filepath.Join(dir, "kubeconfig")+"\n") {
		t.Errorf("up does not end with the KUBECONFIG line:\n%s", output)
	}
	if _, err := connect(t, filepath.Join(dir, "kubeconfig")).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the control plane does not answer after up has returned: %v", err)
	}
	if got := len(processes(t, dir)); got != 7 {
		t.Errorf("%d processes run: want supervisor, etcd, API server, controllers, scheduler, kwok and exec server:\n%s",
			got, strings.Join(processes(t, dir), "\n"))
	}
	if said := askExecServer(t, dir); !strings.Contains(said, "pod demo/none does not exist") {
		t.Errorf("the exec server said %q", said)
	}
	if output, err := try(t.Context(), "up", "--dir", dir); err == nil || !strings.Contains(output, "already running") {
		t.Errorf("a second up in the same directory: error %v, output %q", err, output)
	}

	run(t, "down", "--dir", dir)
	if found := processes(t, dir); len(found) > 0 {
		t.Errorf("after down, these run:\n%s", strings.Join(found, "\n"))
	}
	if output := run(t, "down", "--dir", dir); !strings.Contains(output, "ended 0 processes") {
		t.Errorf("the second down said %q", output)
	}
}

func TestKillingAControlPlaneLeavesNoProcess(t *testing.T) {
	p := up(t, "--primaries", "0", "--workers", "1", "--pods", "1", "--exec-handler", handler(t))
	pids, _ := hang(t.Context(), t, demoPod(t, p), "SPDY")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	expectNoProcess(t, p.dir)
	expectEnded(t, pids)
}

func TestAnExecHandlerThatCannotRunIsNamed(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"handler.sh", "/no/such/handler", t.TempDir(), plain} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		output, err := try(ctx, "up", "--dir", filepath.Join(t.TempDir(), "plane"), "--exec-handler", wrong)
		if err == nil || !strings.Contains(output, wrong) {
			t.Errorf("up with handler %s: error %v, output %q", wrong, err, output)
		}
	}
}

func TestTheEndOfTheParentStopsAControlPlane(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plane")
	script := fmt.Sprintf("%s up --dir %s %s & wait", binary, dir, strings.Join(empty, " "))
	parent := exec.Command("sh", "-c", script)
	begin(t, parent)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // killed
	expectNoProcess(t, dir)
}

func TestTheEndOfAComponentEndsTheControlPlaneAndShowsItsLog(t *testing.T) {
	p := up(t, empty...)
	if err := syscall.Kill(pidOf(t, p.dir, "kube-scheduler"), syscall.SIGQUIT); err != nil { // makes Go print its goroutines
		t.Fatal(err)
	}
	err := p.cmd.Wait()
	if code := p.cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("up ended with status %d (%v): want 1", code, err)
	}
	said := p.stderr.String()
	for _, want := range []string{"kube-scheduler ended by itself", filepath.Join(p.dir, "logs", "kube-scheduler.log"), "rflags"} {
		if !strings.Contains(said, want) {
			t.Errorf("up does not mention %q:\n%s", want, said)
		}
	}
	expectNoProcess(t, p.dir)
}

// pidOf reads the documented list of pids.
func pidOf(t *testing.T, dir, component string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Processes []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Processes {
		if p.Name == component {
			return p.PID
		}
	}
	t.Fatalf("no %s in %s", component, data)
	return 0
}

func TestAForeignDirectoryIsRefused(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := try(t.Context(), "up", "--dir", dir)
	if err == nil || !strings.Contains(output, dir) {
		t.Errorf("up in a directory with other files: error %v, output %q", err, output)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestATakenPortIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	output, err := try(t.Context(), "up", "--dir", filepath.Join(t.TempDir(), "plane"), "--port-base", port)
	if err == nil || !strings.Contains(output, "port "+port+" is taken") {
		t.Errorf("up on a taken port: error %v, output %q", err, output)
	}
}
