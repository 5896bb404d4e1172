package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// cgroups is where the kernel's control groups are.
const cgroups = "/sys/fs/cgroup"

// Throttled makes a control group whose processes get so many thousandths of a CPU,
// as those of a pod with such a limit do. It needs root. Processes that the test starts
// after that have ended when the group is removed.
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

// Join has a process be in a control group.
func Join(group string, pid int) error {
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// UsedCPU is what the kernel says of the CPU that a control group got, and how often it had to wait for more.
func UsedCPU(group string) (string, error) {
	content, err := os.ReadFile(filepath.Join(group, "cpu.stat"))
	return string(content), err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
