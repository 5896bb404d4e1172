package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// cgroups is the path of the kernel's control groups.
const cgroups = "/sys/fs/cgroup"

// Throttled creates a control group whose processes get millis thousandths of a CPU, like a pod with such a limit. It
// needs root. Processes that the test starts later end before the group is removed.
func Throttled(tb testing.TB, millis int) (group string) {
	tb.Helper()
	const period = 100_000
	quota := millis * period / 1000
	name := fmt.Sprintf("ekco-bench-%d", os.Getpid())
	group = filepath.Join(cgroups, name)
	settings := [][2]string{{"cpu.max", fmt.Sprint(quota, " ", period)}}
	if first := filepath.Join(cgroups, "cpu"); isDirectory(first) {
		group = filepath.Join(first, name)
		settings = [][2]string{{"cpu.cfs_period_us", fmt.Sprint(period)}, {"cpu.cfs_quota_us", fmt.Sprint(quota)}}
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		tb.Fatalf("make a control group, which only root can do: %v", err)
	}
	tb.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			tb.Error(err)
		}
	})
	for _, setting := range settings {
		if err := os.WriteFile(filepath.Join(group, setting[0]), []byte(setting[1]), 0); err != nil {
			tb.Fatalf("limit the CPU of a control group: %v", err)
		}
	}
	return group
}

// Join moves a process into a control group.
func Join(group string, pid int) error {
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// UsedCPU returns the kernel's statistics about the CPU time of a control group, and how often it had to wait for more.
func UsedCPU(group string) (string, error) {
	content, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	return string(content), err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
