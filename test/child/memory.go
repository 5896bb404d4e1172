package child

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is what the kernel says of a process's memory, in bytes.
type Memory struct {
	// Resident is VmRSS, of which Anonymous is RssAnon; the rest are pages of the binary
	// and of files, which the kernel can drop.
	Resident, Anonymous int64
	// Peak is VmHWM, the highest resident so far.
	Peak int64
}

// MemoryOf reads what the kernel says of a process that runs.
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
