package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	clientexec "k8s.io/client-go/util/exec"
)

// handler returns the program of the tests that exec runs.
func handler(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata/handler.sh")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// protocols are the ways in which clients ask for exec.
var protocols = []string{"WebSocket", "SPDY"}

// target is a container to exec into, of a control plane.
type target struct {
	dir, namespace, pod, container string
	account                        string // a kubeconfig other than the administrator's
}

// exec runs a command over a protocol, with input unless it is nil.
func (at target) exec(ctx context.Context, protocol string, input io.Reader, command ...string) (stdout, stderr string, err error) {
	kubeconfig := at.account
	if kubeconfig == "" {
		kubeconfig = filepath.Join(at.dir, "kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", "", err
	}
	request := client.CoreV1().RESTClient().Post().Namespace(at.namespace).Resource("pods").Name(at.pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: at.container, Command: command, Stdin: input != nil, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	var executor remotecommand.Executor
	if protocol == "SPDY" {
		executor, err = remotecommand.NewSPDYExecutor(config, http.MethodPost, request.URL())
	} else {
		executor, err = remotecommand.NewWebSocketExecutor(config, http.MethodGet, request.URL().String())
	}
	if err != nil {
		return "", "", err
	}
	var out, problems bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: input, Stdout: &out, Stderr: &problems})
	if ctx.Err() != nil {
		return "", "", err // the buffers may still be written to
	}
	return out.String(), problems.String(), err
}

// over runs a test over each protocol.
func over(t *testing.T, test func(t *testing.T, protocol string)) {
	t.Helper()
	for _, protocol := range protocols {
		t.Run("over "+protocol, func(t *testing.T) { test(t, protocol) })
	}
}

// demoPod returns a pod of the demo workload.
func demoPod(t *testing.T, p program) target {
	t.Helper()
	pods, err := p.client.CoreV1().Pods("demo").List(t.Context(), metav1.ListOptions{LabelSelector: "app=demo"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return target{dir: p.dir, namespace: "demo", pod: pod.Name, container: "app"}
		}
	}
	t.Fatal("no pod of the demo workload runs")
	return target{}
}

func execRuns(t *testing.T, p program) {
	at := demoPod(t, p)
	over(t, func(t *testing.T, protocol string) {
		stdout, stderr, err := at.exec(t.Context(), protocol, nil, "echo", "two words", "", `"quoted" & Ünïcode`)
		want := "demo/" + at.pod + "/app\n<echo>\n<two words>\n<>\n<\"quoted\" & Ünïcode>\n"
		if stdout != want || stderr != "problem\n" || err != nil {
			t.Errorf("got standard output %q, error %q (%v): want %q and %q", stdout, stderr, err, want, "problem\n")
		}
	})
}

func execExitCodes(t *testing.T, p program) {
	at := demoPod(t, p)
	over(t, func(t *testing.T, protocol string) {
		for want, command := range map[int][]string{
			0: {"exit", "0"}, 2: {"exit", "2"}, 39: {"exit", "39"}, 255: {"exit", "255"},
			128 + 9: {"kill", "9"}, 128 + 11: {"kill", "11"},
		} {
			_, _, err := at.exec(t.Context(), protocol, nil, command...)
			var exit clientexec.CodeExitError
			switch {
			case err == nil && want != 0:
				t.Errorf("%v succeeded: want exit code %d", command, want)
			case err != nil && (!errors.As(err, &exit) || exit.Code != want):
				t.Errorf("%v gave %v: want exit code %d", command, err, want)
			}
		}
	})
}

func execStreams(t *testing.T, p program) {
	at := demoPod(t, p)
	input := make([]byte, 8<<20)
	_, _ = rand.Read(input) // never fails
	over(t, func(t *testing.T, protocol string) {
		stdout, _, err := at.exec(t.Context(), protocol, bytes.NewReader(input), "cat")
		if err != nil || stdout != string(input) {
			t.Errorf("%d random bytes came back as %d others (%v)", len(input), len(stdout), err)
		}
		// A client may keep its side open, and send what nobody reads.
		endless, closeInput := io.Pipe()
		defer closeInput.Close()
		var exit clientexec.CodeExitError
		if _, _, err := at.exec(t.Context(), protocol, endless, "exit", "3"); !errors.As(err, &exit) || exit.Code != 3 {
			t.Errorf("with input that does not end: %v, want exit code 3", err)
		}
		if _, _, err := at.exec(t.Context(), protocol, bytes.NewReader(input), "exit", "4"); !errors.As(err, &exit) || exit.Code != 4 {
			t.Errorf("with input that is not read: %v, want exit code 4", err)
		}
	})
}

func execKubectl(t *testing.T, p program) {
	at := demoPod(t, p)
	args := []string{"kubectl", "--kubeconfig=" + filepath.Join(p.dir, "kubeconfig"), "-n", at.namespace}
	command := func(more ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), binary, append(args, more...)...)
	}

	cat := command("exec", "-i", at.pod, "--", "cat")
	cat.Stdin = strings.NewReader("from standard input")
	if output, err := cat.Output(); err != nil || string(output) != "from standard input" {
		t.Errorf("kubectl exec -i printed %q (%v)", output, err)
	}
	var exit *exec.ExitError
	if err := command("exec", at.pod, "--", "exit", "39").Run(); !errors.As(err, &exit) || exit.ExitCode() != 39 {
		t.Errorf("kubectl exec of 'exit 39' ended with %v", err)
	}
	if output, err := command("logs", at.pod).CombinedOutput(); err == nil || !strings.Contains(string(output), "not simulated") {
		t.Errorf("kubectl logs printed %q (%v): want a refusal", output, err)
	}
}

// hang starts a command that does not end by itself, and returns its processes
// when it runs. ended gets the error of the exec.
func hang(ctx context.Context, t *testing.T, at target, protocol string) (pids []int, ended <-chan error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pids")
	done := make(chan error, 1)
	go func() {
		_, _, err := at.exec(ctx, protocol, nil, "hang", file)
		done <- err
	}()
	eventually(t, func() error {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pids = make([]int, 2)
		_, err = fmt.Sscan(string(data), &pids[0], &pids[1])
		return err
	})
	t.Cleanup(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone unless the test failed
		}
	})
	return pids, done
}

// expectEnded waits for the end of processes.
func expectEnded(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, func() error {
		for _, pid := range pids {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err == nil && !bytes.Contains(stat, []byte(") Z ")) { // a zombie has ended, whenever it is buried
				return fmt.Errorf("process %d still runs: %s", pid, stat)
			}
		}
		return nil
	})
}

func execClientGoes(t *testing.T, p program) {
	at := demoPod(t, p)
	over(t, func(t *testing.T, protocol string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pids, ended := hang(ctx, t, at, protocol)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("exec ended with %v", err)
		}
		expectEnded(t, pids)
	})
}

func execRefused(t *testing.T, p program) {
	at := demoPod(t, p)
	createPod(t, p.client, "stopped", "worker-3")
	_, err := p.client.CoreV1().Pods("demo").Patch(t.Context(), "stopped", types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		pod, container string
		want           string
	}{
		"of an unknown pod":               {"no-such", "app", "not found"},
		"of an unknown container":         {at.pod, "no-such", "no-such"},
		"of a container that has stopped": {"stopped", "app", "not running"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			over(t, func(t *testing.T, protocol string) {
				stdout, _, err := target{dir: p.dir, namespace: "demo", pod: test.pod, container: test.container}.
					exec(t.Context(), protocol, nil, "echo")
				if err == nil || !strings.Contains(err.Error(), test.want) || stdout != "" {
					t.Errorf("exec gave %v and %q: want an error with %q", err, stdout, test.want)
				}
			})
		})
	}
}

func execLostNode(t *testing.T, p program) {
	at := demoPod(t, p)
	at.pod = "on-lost"
	createPod(t, p.client, at.pod, "worker-2")
	pids, ended := hang(t.Context(), t, at, "WebSocket")
	run(t, "node", "lose", "worker-2", "--dir", p.dir)
	over(t, func(t *testing.T, protocol string) {
		_, _, err := at.exec(t.Context(), protocol, nil, "echo")
		if err == nil || !strings.Contains(err.Error(), `error dialing backend: node "worker-2" is lost`) {
			t.Errorf("exec on a lost node gave %v", err)
		}
	})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("the exec that ran when the node was lost ended with %v", err)
	}
	expectEnded(t, pids)
	run(t, "node", "return", "worker-2", "--dir", p.dir, "--wait", patience.String())
	if _, _, err := at.exec(t.Context(), "SPDY", nil, "echo"); err != nil {
		t.Errorf("after the node's return: %v", err)
	}
}

func execForbidden(t *testing.T, p program) {
	at := demoPod(t, p)
	at.account = filepath.Join(p.dir, "exec.kubeconfig")
	run(t, "kubeconfig", "--dir", p.dir, "--service-account", "demo/default", "--out", at.account)
	over(t, func(t *testing.T, protocol string) {
		_, _, err := at.exec(t.Context(), protocol, nil, "echo")
		if err == nil || !strings.Contains(err.Error(), `User "system:serviceaccount:demo:default" cannot`) {
			t.Errorf("exec without the right to gave %v", err)
		}
	})
}

// execOnOtherNodes runs after nodes were replaced, added and scaled.
func execOnOtherNodes(t *testing.T, p program) {
	for node, pod := range map[string]string{"worker-2": "on-replaced", "primary-4": "on-added", "scale-00005": "on-scaled"} {
		t.Run(node, func(t *testing.T) {
			createPod(t, p.client, pod, node)
			at := target{dir: p.dir, namespace: "demo", pod: pod, container: "app"}
			if _, _, err := at.exec(t.Context(), "WebSocket", nil, "echo"); err != nil {
				t.Error(err)
			}
		})
	}
}
