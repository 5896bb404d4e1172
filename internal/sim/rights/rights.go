// Package rights runs test code with the few capabilities that a container has.
package rights

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// known has the capabilities that tests need, by their names in Kubernetes.
var known = map[string]uint{"CHOWN": unix.CAP_CHOWN}

// Only runs do as root with these capabilities and no others. It must be called as root.
func Only(capabilities []string, do func()) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends and no other goroutine gets it
		err := drop(capabilities)
		if err == nil {
			do()
		}
		result <- err
	}()
	return <-result
}

func drop(capabilities []string) error {
	var sets [2]unix.CapUserData
	for _, name := range capabilities {
		number, is := known[name]
		if !is {
			return fmt.Errorf("capability %s is not known here", name)
		}
		sets[number/32].Effective |= 1 << (number % 32)
	}
	for i := range sets {
		sets[i].Permitted = sets[i].Effective
	}
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}
