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

// memory is what the kernel says of a process's memory, in bytes.
type memory struct {
	// resident is VmRSS, of which anonymous is RssAnon; the rest are pages of
	// the binary and of the journal, which the kernel can drop.
	resident, anonymous float64
	// peak is VmHWM, the highest resident so far.
	peak float64
}

func memoryOf(b *testing.B, p *child.Process) memory {
	b.Helper()
	used, err := readMemory(p.PID())
	if err != nil {
		b.Fatal(err)
	}
	return used
}

func readMemory(pid int) (memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	fields := make(map[string]float64)
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		if number, isSize := strings.CutSuffix(strings.TrimSpace(value), " kB"); isSize {
			kib, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil {
				return memory{}, fmt.Errorf("read %q: %w", line, err)
			}
			fields[name] = kib * 1024
		}
	}
	if fields["VmHWM"] == 0 {
		return memory{}, fmt.Errorf("process %d has no memory left", pid)
	}
	return memory{resident: fields["VmRSS"], anonymous: fields["RssAnon"], peak: fields["VmHWM"]}, nil
}

// peakOf returns the most anonymous memory that a process, or a child of its
// own, was seen to have until it exited, looking a hundred times a second. What
// getrusage says is of no use: it counts the memory of the starting process.
func peakOf(pid int, exited <-chan struct{}) (peak float64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // none is fine
		for _, who := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
			if id, err := strconv.Atoi(who); err == nil {
				if used, err := readMemory(id); err == nil {
					peak = max(peak, used.anonymous)
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

func mebibytes(bytes float64) float64 { return bytes / (1 << 20) }

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
