package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/test/child"
)

func memoryOf(b *testing.B, p *child.Process) child.Memory {
	b.Helper()
	used, err := child.MemoryOf(p.PID())
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// peakOf returns the most anonymous memory that a process, or a child of its
// own, was seen to have until it exited, looking a hundred times a second. What
// getrusage says is of no use: it counts the memory of the starting process.
func peakOf(pid int, exited <-chan struct{}) (peak int64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // none is fine
		for _, who := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
			if id, err := strconv.Atoi(who); err == nil {
				if used, err := child.MemoryOf(id); err == nil {
					peak = max(peak, used.Anonymous)
				}
			}
		}
		select {
		case <-tick.C:
		case <-exited:
			return peak
		}
	}
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// cpuOf returns how long the threads of a process have run on a CPU. It is the
// scheduler's own account: utime and stime in /proc count whole ticks, and miss
// a process that runs for less than one at a time.
func cpuOf(b *testing.B, p *child.Process) time.Duration {
	b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.PID()))
	if err != nil || len(threads) == 0 {
		b.Fatalf("no threads of process %d: %v", p.PID(), err)
	}
	var total time.Duration
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			b.Fatal(err)
		}
		nanoseconds, err := strconv.ParseInt(strings.Fields(string(content))[0], 10, 64)
		if err != nil {
			b.Fatalf("read CPU time %q: %v", content, err)
		}
		total += time.Duration(nanoseconds)
	}
	return total
}
