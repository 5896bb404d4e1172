package nodetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operating is the process of EKCO's pod, as this machine's kernel has it.
type operating struct {
	pid int
	// restarts is how often its container was restarted before.
	restarts int32
	// groups are its control groups: the directory by controller, "" for the unified one.
	groups map[string]string
}

// operating finds the process of the one pod of EKCO.
func (w *world) operating(tb testing.TB) operating {
	tb.Helper()
	pod, err := w.Client.CoreV1().Pods("kurl").Get(tb.Context(), w.operator(tb), metav1.GetOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	_, container, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	found := processes(tb, func(command string, groups []byte) bool {
		return command == "/usr/bin/ekco operator" && bytes.Contains(groups, []byte(container))
	})
	if len(found) != 1 {
		tb.Fatalf("container %q has the processes %v", container, found)
	}
	o := operating{pid: found[0], restarts: pod.Status.ContainerStatuses[0].RestartCount, groups: map[string]string{}}
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", o.pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for controller := range strings.SplitSeq(parts[1], ",") {
			o.groups[controller] = filepath.Join("/sys/fs/cgroup", controller, parts[2])
		}
	}
	return o
}

// processes returns those of this machine that are wanted by their command line and groups.
func processes(tb testing.TB, wanted func(command string, groups []byte) bool) (found []int) {
	tb.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		tb.Fatal(err)
	}
	for _, dir := range dirs {
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && wanted(strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")), groups) {
			found = append(found, pid)
		}
	}
	return found
}

// v2 reports whether the machine has unified control groups alone.
func (o operating) v2() bool { return o.groups["memory"] == "" }

// file is a file of a control group: that of the controller, or that of unified groups.
func (o operating) file(controller, name, unified string) string {
	if o.v2() {
		return filepath.Join(o.groups[""], unified)
	}
	return filepath.Join(o.groups[controller], name)
}

// setCPU lets EKCO have so many thousandths of a core.
func (o operating) setCPU(tb testing.TB, thousandths int) {
	tb.Helper()
	quota := strconv.Itoa(thousandths * 100) // of the 100 ms of a period, in µs
	if o.v2() {
		quota += " 100000"
	}
	if err := os.WriteFile(o.file("cpu", "cpu.cfs_quota_us", "cpu.max"), []byte(quota), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// throttled is how often EKCO had used up its share of a period.
func (o operating) throttled(tb testing.TB) int {
	tb.Helper()
	return o.number(tb, o.file("cpu", "cpu.stat", "cpu.stat"), "nr_throttled")
}

// periods are those in which EKCO may have used its share.
func (o operating) periods(tb testing.TB) int {
	tb.Helper()
	return o.number(tb, o.file("cpu", "cpu.stat", "cpu.stat"), "nr_periods")
}

// usedCPU is the time that all in the pod have had of the processors.
func (o operating) usedCPU(tb testing.TB) time.Duration {
	tb.Helper()
	if o.v2() {
		return time.Duration(o.number(tb, o.file("", "", "cpu.stat"), "usage_usec")) * time.Microsecond
	}
	return time.Duration(o.number(tb, o.file("cpuacct", "cpuacct.usage", ""), ""))
}

// anonymous is the memory that the kernel cannot drop, in bytes.
func (o operating) anonymous(tb testing.TB) int {
	tb.Helper()
	name := "rss"
	if o.v2() {
		name = "anon"
	}
	return o.number(tb, o.file("memory", "memory.stat", "memory.stat"), name)
}

// number reads a number from a file with a name and a number on each line, or with one number
// alone, whose name is empty.
func (o operating) number(tb testing.TB, path, name string) int {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if name == "" || fields[0] == name {
			number, err := strconv.Atoi(fields[len(fields)-1])
			if err != nil {
				tb.Fatalf("%s: %v", path, err)
			}
			return number
		}
	}
	tb.Fatalf("%s has no %q: %s", path, name, content)
	return 0
}

// squeeze lowers the limit of memory step by step, to what EKCO cannot do without.
func (o operating) squeeze(tb testing.TB) {
	tb.Helper()
	limit := o.file("memory", "memory.limit_in_bytes", "memory.max")
	for mib := 64; mib > 0 && o.runs(); mib -= 2 {
		if os.WriteFile(limit, []byte(strconv.Itoa(mib<<20)), 0o600) != nil {
			return // so little is not to be had: everything that it takes now is too much
		}
	}
}

// runs reports whether the process has not ended.
func (o operating) runs() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d/exe", o.pid))
	return err == nil
}
