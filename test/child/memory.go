package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is the memory of a process in bytes, as the kernel reports it.
type Memory struct {
	// Resident is VmRSS. Anonymous is RssAnon, a part of it; the other pages belong to the binary and to files, and the
	// kernel can drop them.
	Resident, Anonymous int64
	// Peak is VmHWM, the maximum of VmRSS so far.
	Peak int64
}

// MemoryOf reads the memory of a running process.
func MemoryOf(pid int) (Memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	fields := make(map[string]int64)
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(line, ":")
		if number, isSize := strings.CutSuffix(strings.TrimSpace(value), " kB"); isSize {
			kib, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			if err != nil {
				return Memory{}, fmt.Errorf("read %q: %w", line, err)
			}
			fields[name] = kib << 10
		}
	}
	if fields["VmHWM"] == 0 {
		return Memory{}, fmt.Errorf("process %d has no memory left", pid)
	}
	return Memory{Resident: fields["VmRSS"], Anonymous: fields["RssAnon"], Peak: fields["VmHWM"]}, nil
}
