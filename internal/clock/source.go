package clock

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootID is the file in which Linux has the id of the boot, also in a container.
const bootID = "/proc/sys/kernel/random/boot_id"

// Machine returns the clocks of the machine. Its monotonic clock stops while the machine sleeps.
func Machine() Source {
	name, err := os.ReadFile(bootID)
	if _, readable := sinceBoot(); err != nil || !readable {
		return Process()
	}
	return Source{
		Wall: time.Now, Boot: strings.TrimSpace(string(name)),
		Passed: func() time.Duration { passed, _ := sinceBoot(); return passed },
	}
}

func sinceBoot() (time.Duration, bool) {
	var at unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return time.Duration(at.Nano()), err == nil
}

// Process returns clocks of this process, which no other process can continue.
func Process() Source {
	began := time.Now()
	return Source{Wall: time.Now, Passed: func() time.Duration { return time.Since(began) }}
}
