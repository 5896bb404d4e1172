// Package plane starts the real control plane of test/controlplane with simulated nodes. The control plane ends with
// its test.
package plane

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/test/artifacts"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/child"
)

// startTimeout limits a start, so that a test cannot hang. A start takes 3 to 4 s on a quiet machine.
const startTimeout = 15 * time.Minute

// Plane is a running control plane.
type Plane struct {
	// Program is the binary, which also contains kubectl.
	Program string
	// Dir is the directory with the files that the README of test/controlplane lists.
	Dir string
	// Config and Client have the administrator's credentials.
	Config *rest.Config
	Client *kubernetes.Clientset
}

var kubeconfigLine = regexp.MustCompile(`(?m)^KUBECONFIG=.+$`)

// Start starts a control plane. args are arguments of "controlplane up".
func Start(tb testing.TB, program string, args ...string) *Plane {
	tb.Helper()
	p := &Plane{Program: program, Dir: tb.TempDir()}
	up := child.Start(tb, program, append([]string{"up", "--dir", p.Dir}, args...)...)
	tb.Cleanup(func() {
		if tb.Failed() {
			artifacts.KeepFiles(tb, filepath.Join(p.Dir, "logs"), "*.log")
		}
	})
	await.Until(tb, startTimeout, "the control plane is up", func() (bool, string) {
		output := up.Output.String()
		if !up.Running() {
			tb.Fatalf("the control plane did not start:\n%s", output)
		}
		return kubeconfigLine.MatchString(output), output
	})
	var err error
	if p.Config, err = clientcmd.BuildConfigFromFlags("", p.Kubeconfig()); err != nil {
		tb.Fatal(err)
	}
	p.Config.QPS, p.Config.Burst = 200, 400
	if p.Client, err = kubernetes.NewForConfig(p.Config); err != nil {
		tb.Fatal(err)
	}
	return p
}

// Kubeconfig returns the path of the administrator's kubeconfig.
func (p *Plane) Kubeconfig() string { return filepath.Join(p.Dir, "kubeconfig") }

// Command returns a command of the program, such as "node lose".
func (p *Plane) Command(args ...string) *exec.Cmd {
	// Do not use the test's context, because cleanups need commands, too.
	return exec.CommandContext(context.Background(), p.Program, args...)
}

// KubectlCommand returns a kubectl command with the administrator's credentials.
func (p *Plane) KubectlCommand(args ...string) *exec.Cmd {
	return p.Command(append([]string{"kubectl", "--kubeconfig", p.Kubeconfig()}, args...)...)
}

// Kubectl runs kubectl with the administrator's credentials and returns its output. The test ends if kubectl fails.
func (p *Plane) Kubectl(tb testing.TB, args ...string) string {
	tb.Helper()
	output, err := p.KubectlCommand(args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}
