package child

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// cpuTime is the CPU time that the programs of a test used.
type cpuTime struct {
	mu sync.Mutex
	// ended is the CPU time of programs that have ended, and of their descendants for which they waited. The kernel
	// also counts it for the test binary. killed is the CPU time of the descendants of killed programs. The kernel does
	// not count it for the test binary.
	ended, killed time.Duration
}

// cpuTimes has a *cpuTime for each running test.
var cpuTimes sync.Map

// cpuTimeOf returns the CPU time of a test. It is logged when the test ends; test/times reads that line.
func cpuTimeOf(tb testing.TB) *cpuTime {
	is, known := cpuTimes.LoadOrStore(tb, &cpuTime{})
	used := is.(*cpuTime)
	if !known {
		tb.Cleanup(func() {
			cpuTimes.Delete(tb)
			tb.Logf("CPU time of programs: %.2f s ended, %.2f s killed", used.ended.Seconds(), used.killed.Seconds())
		})
	}
	return used
}

// addEnded adds the CPU time of a process and its descendants, which the kernel reports.
func (c *cpuTime) addEnded(state *os.ProcessState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended += state.UserTime() + state.SystemTime()
}

// addKilled adds the present CPU time of the descendants of a process, right before the process is killed. It misses
// processes that start at the same time.
func (c *cpuTime) addKilled(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, child := range children(pid) {
		c.killed += treeCPU(child)
	}
}

// ticksPerSecond is the unit of times in /proc/PID/stat, on every Linux that Go runs on.
const ticksPerSecond = 100

// treeCPU returns the CPU time of a process and its descendants, or 0 if the process has ended.
func treeCPU(pid int) time.Duration {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	// After the name in parentheses, which may contain anything, utime, stime,
	// cutime and cstime are the fields 14 to 17 of proc(5), counted from 1.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	total := time.Duration(0)
	for _, field := range fields[11:15] {
		ticks, _ := strconv.Atoi(field) // the kernel writes numbers
		total += time.Duration(ticks) * time.Second / ticksPerSecond
	}
	for _, child := range children(pid) {
		total += treeCPU(child)
	}
	return total
}

// children returns the children of all threads of a process.
func children(pid int) (pids []int) {
	lists, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children")) // the pattern is valid
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(content)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
