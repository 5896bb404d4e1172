package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// patience bounds every wait. Only a test that fails waits that long.
const patience = 5 * time.Minute

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	build := exec.Command("../build.sh")
	build.Stderr = os.Stderr
	path, err := build.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot build the program under test:", err)
		os.Exit(1)
	}
	binary = strings.TrimSpace(string(path))
	os.Exit(m.Run())
}

// program is a control plane that runs in the foreground.
type program struct {
	dir    string
	cmd    *exec.Cmd
	stderr *bytes.Buffer // complete once cmd has ended
	client kubernetes.Interface
}

// up starts a control plane, waits until it is ready, and stops it when the
// test ends.
func up(t *testing.T, args ...string) program {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plane")
	cmd := exec.Command(binary, append([]string{"up", "--dir", dir}, args...)...)
	stderr := begin(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // may have been stopped by the test
		_ = cmd.Wait()
		expectNoProcess(t, dir)
	})
	return program{dir: dir, cmd: cmd, stderr: stderr, client: connect(t, filepath.Join(dir, "kubeconfig"))}
}

// begin starts cmd and waits for its KUBECONFIG line. What it returns is what
// cmd writes to standard error, to be read once cmd has ended.
func begin(t *testing.T, cmd *exec.Cmd) *bytes.Buffer {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // should a grandchild hold standard error
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "KUBECONFIG=") {
		_ = cmd.Wait() // also completes stderr
		t.Fatalf("the control plane said %q (%v) and:\n%s", line, err, stderr.String())
	}
	return &stderr
}

func connect(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// run runs a command of the program that must succeed.
func run(t *testing.T, args ...string) string {
	t.Helper()
	output, err := try(t.Context(), args...)
	if err != nil {
		t.Fatalf("controlplane %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

// try runs a command and returns all that it printed.
func try(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	return string(output), err
}

// eventually polls check until it returns nil, and returns how long it took.
func eventually(t *testing.T, check func() error) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return time.Since(start)
		}
		if time.Since(start) > patience {
			t.Fatalf("not so after %s: %v", patience, err)
		}
		<-tick.C
	}
}

// expectNoProcess waits for the end of every process that has dir in its
// arguments, which all processes of a control plane but the supervisor of a
// relative --dir do.
func expectNoProcess(t *testing.T, dir string) {
	t.Helper()
	eventually(t, func() error {
		if found := processes(t, dir); len(found) > 0 {
			return fmt.Errorf("these still run:\n%s", strings.Join(found, "\n"))
		}
		return nil
	})
}

func processes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Contains(data, []byte(dir)) {
			found = append(found, string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
		}
	}
	return found
}
