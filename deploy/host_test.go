package deploy_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeKubectl writes down how it was called, a line for each argument, and answers from files.
const fakeKubectl = `#!/bin/bash
dir="$(dirname "$0")"
{ echo "KUBECONFIG=$KUBECONFIG"; printf '%s\n' "$@"; } >> "$dir/called"
case " $* " in
*" get pods "*"--output wide"*) echo "ekc-operator-x 0/1 Pending" ;;
*" get pods "*) [ -z "$FAILS" ] || { echo "refused: $FAILS" >&2; exit 4; }; cat "$dir/pods" ;;
*" exec "*) cat > "$dir/read"; echo executed; exit 3 ;;
esac
`

// purgeOnHost runs ekco-purge-node where kubectl lists these pods.
func purgeOnHost(t *testing.T, pods, stdin string, env []string, args ...string) (called []string, out, errOut string, code int) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"kubectl": fakeKubectl, "pods": pods} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "host/ekco-purge-node", args...)
	command.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH")}, env...)
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "called"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n"), stdout.String(), stderr.String(), command.ProcessState.ExitCode()
}

func TestTheHostsCommandPurgesInThePodOfTheOperator(t *testing.T) {
	called, out, errOut, code := purgeOnHost(t, "pod/ekc-operator-old\npod/ekc-operator-new\n", "", nil, "worker 2", "--force", "--reason", "it's $HOME")
	want := strings.Join([]string{
		"exec", "--container", "ekc-operator", "pod/ekc-operator-new", "--", "ekco", "purge-node", "worker 2", "--force", "--reason", "it's $HOME",
	}, "\n")
	if got := strings.Join(called, "\n"); !strings.HasSuffix(got, want) || strings.Contains(got, "--tty") || strings.Contains(got, "--stdin") {
		t.Errorf("called were %q, want that it ends with %q", got, want)
	}
	if !strings.Contains(strings.Join(called, " "), "--selector app=ekc-operator --field-selector status.phase=Running --sort-by=.metadata.creationTimestamp") {
		t.Errorf("pods were looked for by %q", called)
	}
	if code != 3 || out != "executed\n" || errOut != "" {
		t.Errorf("exit code %d, said %q and %q", code, out, errOut)
	}
}

func TestTheHostsCommandUsesTheAdministratorsConfigurationUnlessToldOtherwise(t *testing.T) {
	for want, env := range map[string][]string{"/etc/kubernetes/admin.conf": nil, "/root/other": {"KUBECONFIG=/root/other"}} {
		called, _, _, _ := purgeOnHost(t, "pod/a\n", "", env, "--help")
		if called[0] != "KUBECONFIG="+want {
			t.Errorf("it is %s, want %s", called[0], want)
		}
	}
}

func TestWithoutAPodThatRunsTheHostsCommandShowsThoseThereAre(t *testing.T) {
	called, out, errOut, code := purgeOnHost(t, "", "", nil, "worker-2")
	if code != 1 || out != "" || !strings.Contains(errOut, "no pod of EKCO runs in namespace kurl") || !strings.Contains(errOut, "ekc-operator-x 0/1 Pending") {
		t.Errorf("exit code %d, said %q and %q", code, out, errOut)
	}
	if strings.Contains(strings.Join(called, " "), "exec") {
		t.Errorf("called were %q", called)
	}
}

// TestWhereTheAPIDoesNotAnswerTheHostsCommandSaysWhatItNeeds: kubectl alone blames a server at localhost.
func TestWhereTheAPIDoesNotAnswerTheHostsCommandSaysWhatItNeeds(t *testing.T) {
	called, out, errOut, code := purgeOnHost(t, "pod/a\n", "", []string{"FAILS=no such file", "KUBECONFIG=/nowhere"}, "worker-2")
	if code != 1 || out != "" || !strings.HasPrefix(errOut, "refused: no such file\nekco-purge-node: cannot ask the Kubernetes API") ||
		!strings.Contains(errOut, "KUBECONFIG is /nowhere: run this as root on a primary") || strings.Contains(errOut, "no pod of EKCO runs") {
		t.Errorf("exit code %d, said %q and %q", code, out, errOut)
	}
	if strings.Contains(strings.Join(called, " "), "exec") {
		t.Errorf("called were %q", called)
	}
}

// TestTheHostsCommandLeavesTheInputOfALoopAlone: "while read node; do ekco-purge-node $node; done".
func TestTheHostsCommandLeavesTheInputOfALoopAlone(t *testing.T) {
	called, _, _, _ := purgeOnHost(t, "pod/a\n", "worker-3\n", nil, "worker-2")
	if strings.Contains(strings.Join(called, " "), "--stdin") {
		t.Errorf("called were %q", called)
	}
}

// TestOnATerminalTheHostsCommandCanBeAsked: script gives it one.
func TestOnATerminalTheHostsCommandCanBeAsked(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"kubectl": fakeKubectl, "pods": "pod/a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "script", "--quiet", "--return", "--command", "host/ekco-purge-node worker-2 | cat", "/dev/null")
	command.Env, command.Stdin = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SHELL=/bin/bash"}, strings.NewReader("\x04")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(dir, "called"))
	if err != nil || !strings.Contains(string(content), "exec\n--stdin\n--tty\n") {
		t.Errorf("called were %q, %v", content, err)
	}
}

// TestTheHostsScriptsRunWithAnOldBash: hosts of kURL have bash from 4.2 on.
func TestTheHostsScriptsRunWithAnOldBash(t *testing.T) {
	scripts, err := filepath.Glob("host/*")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, script := range scripts {
		if out, err := exec.CommandContext(t.Context(), "bash", "-n", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", script, out)
		}
		content, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), ` "${terminal[@]}"`) {
			t.Errorf("%s: an empty list is unset to bash before 4.4", script)
		}
		info, err := os.Stat(script)
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", script, info.Mode(), err)
		}
	}
}
