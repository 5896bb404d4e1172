package nodetest

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/test/await"
)

// primary are the labels of a primary.
var primary = map[string]string{"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": ""}

// world is a cluster with EKCO in it, as kURL installs it: on a real primary, beside
// simulated nodes.
type world struct {
	*Cluster
	node *Node
}

// quickly are the settings that differ from those of an installation: minutes are seconds.
var quickly = map[string]string{
	"node_unreachable_toleration": "10s", "clear_after": "1s", "pod_termination_grace": "1s", "settling_time": "1s",
	"purge_cooldown": "1s", "reconcile_interval": "1s",
	// No program runs on simulated primaries, so that none can look at certificates there.
	"rotate_certs": "false",
}

// prepare starts a cluster that has all but EKCO.
func prepare(t testing.TB, args ...string) *world {
	t.Helper()
	w := &world{Cluster: StartCluster(t, append([]string{"--primaries", "2"}, args...)...)}
	// Simulated primaries run no real pod.
	w.Kubectl(t, "taint", "node", "-l", "node-role.kubernetes.io/control-plane", "simulated=only:NoSchedule")
	w.node = w.Start(t, "real-1", primary, built(t, ekcoImage), built(t, taskImage))
	w.node.WaitReady(t)
	w.apply(t, "namespace", "rbac")
	return w
}

// install starts a cluster and installs EKCO in it as it is delivered; settings are added to those that make
// it quick.
func install(t testing.TB, settings map[string]string, args ...string) *world {
	t.Helper()
	w := prepare(t, args...)
	w.configure(t, quickSettings(settings))
	w.apply(t, "service", "deployment")
	return w
}

// installQuick is install for tests that are not about the Deployment, and start EKCO again and again.
func installQuick(t testing.TB, settings map[string]string, args ...string) *world {
	t.Helper()
	w := prepare(t, args...)
	w.configure(t, quickSettings(settings))
	content, err := os.ReadFile("../../deploy/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := string(content)
	for _, change := range [][2]string{
		{"initialDelaySeconds: 5\n            periodSeconds: 5\n", "periodSeconds: 1\n"},
		{"periodSeconds: 2\n", "periodSeconds: 1\n"},
		{"cpu: 200m\n", "cpu: 2\n"},
		{"tolerationSeconds: 30\n", "tolerationSeconds: 5\n"},
	} {
		if !strings.Contains(manifest, change[0]) {
			t.Fatalf("the Deployment has no %q", change[0])
		}
		manifest = strings.ReplaceAll(manifest, change[0], change[1])
	}
	w.applyText(t, manifest)
	return w
}

func quickSettings(more map[string]string) map[string]string {
	settings := maps.Clone(quickly)
	maps.Copy(settings, more)
	return settings
}

// apply applies manifests of deploy as they are.
func (w *world) apply(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		w.Kubectl(t, "apply", "-f", filepath.Join("..", "..", "deploy", name+".yaml"))
	}
}

// applyText applies a manifest.
func (w *world) applyText(t testing.TB, manifest string) {
	t.Helper()
	apply := w.kubectl("apply", "-f", "-")
	apply.Stdin = strings.NewReader(manifest)
	if output, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// configure applies the ConfigMap of deploy with other settings.
func (w *world) configure(t testing.TB, settings map[string]string) {
	t.Helper()
	content, err := os.ReadFile("../../deploy/configmap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := string(content)
	for key, value := range settings {
		line := "    " + key + ": " + value
		present := regexp.MustCompile(`(?m)^    ` + key + `: .*$`)
		if present.MatchString(manifest) {
			manifest = present.ReplaceAllString(manifest, line)
		} else {
			manifest = strings.TrimRight(manifest, "\n") + "\n" + line + "\n"
		}
	}
	w.applyText(t, manifest)
}

// operator waits until one pod of EKCO is there, and ready, and returns its name. One that is to
// end on a node that is lost is not counted.
func (w *world) operator(t testing.TB) (name string) {
	t.Helper()
	await.Until(t, await.HangTimeout, "EKCO is ready", func() (bool, string) {
		pods, err := w.Client.CoreV1().Pods("kurl").List(t.Context(), metav1.ListOptions{LabelSelector: "app=ekc-operator"})
		if err != nil {
			return false, err.Error()
		}
		here := slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil && w.isLost(t, pod.Spec.NodeName) })
		if len(here) != 1 {
			return false, fmt.Sprint(len(here), " pods")
		}
		pod := here[0]
		name = pod.Name
		return pod.DeletionTimestamp == nil && isReady(&pod), fmt.Sprintf("%s, %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
	})
	return name
}

func (w *world) isLost(t testing.TB, name string) bool {
	node, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return false
	}
	is, _ := readySince(node, time.Time{})
	return !is
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ekco runs a command in EKCO's pod, without terminal and input, and returns what it says
// and its exit code.
func (w *world) ekco(t testing.TB, args ...string) (output string, code int) {
	t.Helper()
	command := w.kubectl(append([]string{"--namespace", "kurl", "exec", w.operator(t), "--", "ekco"}, args...)...)
	content, err := command.CombinedOutput()
	if err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return string(content), command.ProcessState.ExitCode()
}

// mustEkco is ekco for what has to exit with 0.
func (w *world) mustEkco(t testing.TB, args ...string) string {
	t.Helper()
	output, code := w.ekco(t, args...)
	if code != 0 {
		t.Fatalf("ekco %s: exit %d\n%s", strings.Join(args, " "), code, output)
	}
	return output
}

// read runs a command of EKCO on this machine, which reads what the EKCO on the node has recorded. So
// repeated reads use no CPU of the pod.
func (w *world) read(t testing.TB, args ...string) (output string, err error) {
	t.Helper()
	journal := w.node.Disk("var/lib/ekco/journal.db")
	command := exec.CommandContext(t.Context(), built(t, ekcoProgram), append(args, "--journal", journal)...)
	content, err := command.CombinedOutput()
	return string(content), err
}

// awaitRead repeats read until its output is wanted.
func (w *world) awaitRead(t testing.TB, what string, wanted func(output string) bool, args ...string) {
	t.Helper()
	await.Looking(t, readInterval, await.HangTimeout, what, func() (bool, string) {
		output, err := w.read(t, args...)
		return err == nil && wanted(output), fmt.Sprint(output, err)
	})
}

// readInterval is the pause between two checks that start a program.
const readInterval = 300 * time.Millisecond

// lose marks nodes as lost in the API and waits until they are tainted. Stop a real node or its kubelet first.
func (w *world) lose(t testing.TB, names ...string) {
	t.Helper()
	args := append([]string{"node", "lose", "--dir", w.dir, "--wait", await.HangTimeout.String()}, names...)
	if output, err := exec.CommandContext(t.Context(), binaries.controlplane, args...).CombinedOutput(); err != nil {
		t.Fatalf("lose %s: %v: %s", names, err, output)
	}
}

// awaitPurged waits until a node's object is gone.
func (w *world) awaitPurged(t testing.TB, name string) {
	t.Helper()
	await.Until(t, await.HangTimeout, name+" is deleted", func() (bool, string) {
		_, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// programs are the command lines of what runs in EKCO's pod.
func (w *world) programs(t testing.TB) string {
	t.Helper()
	_, container, _ := strings.Cut(w.container(t).ContainerID, "://")
	var all strings.Builder
	processes(t, func(command string, groups []byte) bool {
		if bytes.Contains(groups, []byte(container)) {
			all.WriteString(command + "\n")
		}
		return false
	})
	return all.String()
}
