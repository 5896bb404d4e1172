package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// namespaceVariable has the network namespace that a test binary has created for itself. It is compared with the real
// namespace, so that an inherited value does not disable the isolation.
const namespaceVariable = "EKCO_TEST_NAMESPACE"

// Simulated nodes get addresses outside 127.0.0.0/8, like real nodes, because EKCO treats loopback addresses
// differently. In the namespace of the tests these addresses belong to loopback, so that connections to them are
// refused. The control plane reads the variable (test/controlplane).
const (
	nodeNetworkVariable = "EKCO_TEST_NODE_NETWORK"
	nodeNetwork         = "10.128.0.0/16"
)

func isIsolated() (bool, error) {
	namespace, err := currentNamespace()
	return err == nil && os.Getenv(namespaceVariable) == namespace, err
}

func currentNamespace() (string, error) {
	namespace, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return "", fmt.Errorf("read the current network namespace: %w", err)
	}
	return namespace, nil
}

// isolate executes this program again, as the same process in a new network namespace. It returns only if that fails.
func isolate(ctx context.Context) error {
	// Unshare moves only this thread; exec ends the others.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network namespace for the tests, which needs root: %w", err)
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"route", "add", "local", nodeNetwork, "dev", "lo"},
	} {
		if output, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("set up the network namespace of the tests: ip %s: %w: %s", strings.Join(args, " "), err, output)
		}
	}
	namespace, err := currentNamespace()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// Setenv replaces an older value, which append would keep and a program might read.
	for name, value := range map[string]string{namespaceVariable: namespace, nodeNetworkVariable: nodeNetwork} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	err = unix.Exec(self, os.Args, os.Environ())
	return fmt.Errorf("start %s again in the network namespace of the tests: %w", self, err)
}

// checkNothingLeft returns an error if the kernel dropped packets for other machines.
func checkNothingLeft() error {
	for _, counter := range []struct {
		file string
		read func(string) (int, error)
	}{
		{"/proc/self/net/snmp", func(content string) (int, error) { return sumCounters(content, "Ip", "OutNoRoutes", "InAddrErrors") }},
		{"/proc/self/net/netstat", func(content string) (int, error) { return sumCounters(content, "IpExt", "InNoRoutes") }},
		{"/proc/self/net/snmp6", ipv6NoRoutes},
	} {
		content, err := os.ReadFile(counter.file)
		if err != nil {
			return fmt.Errorf("check that nothing has left the machine: %w", err)
		}
		count, err := counter.read(string(content))
		if err != nil {
			return fmt.Errorf("check that nothing has left the machine: %s: %w", counter.file, err)
		}
		if count > 0 {
			return fmt.Errorf("these tests sent %d packets (%s) to addresses outside of the tests' network namespace; "+
				"nothing left the machine. Find it with: strace -f -e trace=connect,sendto,sendmsg go test -run … 2>&1 | grep ENETUNREACH",
				count, counter.file)
		}
	}
	return nil
}

// sumCounters adds up counters of a protocol in /proc/net/snmp or /proc/net/netstat, which have a line of names and
// a line of values for each protocol. OutNoRoutes counts packets of this namespace; InNoRoutes (while it forwards)
// and InAddrErrors (while it does not) count those of other namespaces, such as a node's.
func sumCounters(content, protocol string, wanted ...string) (sum int, err error) {
	var names []string
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || fields[0] != protocol+":":
		case names == nil:
			names = fields
		default:
			for _, name := range wanted {
				i := slices.Index(names, name)
				if i < 0 || i >= len(fields) {
					return 0, fmt.Errorf("no value %s %s", protocol, name)
				}
				packets, err := strconv.Atoi(fields[i])
				if err != nil {
					return 0, fmt.Errorf("value %s %s: %w", protocol, name, err)
				}
				sum += packets
			}
			return sum, nil
		}
	}
	return 0, fmt.Errorf("no values of %s", protocol)
}

// ipv6NoRoutes reads Ip6OutNoRoutes from /proc/net/snmp6, which has a line for
// each value.
func ipv6NoRoutes(content string) (int, error) {
	for line := range strings.Lines(content) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == "Ip6OutNoRoutes" {
			return strconv.Atoi(fields[1])
		}
	}
	return 0, errors.New("no value Ip6OutNoRoutes")
}
