package miniotest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// cgroups is where the kernel's control groups are.
const cgroups = "/sys/fs/cgroup"

// throttled makes a control group whose processes get so many thousandths of a CPU,
// as those of a pod with such a limit do. It needs root.
func throttled(b *testing.B, millis int) (group string) {
	b.Helper()
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
		b.Fatalf("make a control group, which only root can do: %v", err)
	}
	b.Cleanup(func() {
		if err := os.Remove(group); err != nil {
			b.Error(err)
		}
	})
	for _, setting := range settings {
		if err := os.WriteFile(filepath.Join(group, setting[0]), []byte(setting[1]), 0); err != nil {
			b.Fatalf("limit the CPU of a control group: %v", err)
		}
	}
	return group
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
