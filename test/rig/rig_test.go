package rig_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/replicatedhq/ekco/test/rig"
)

// dialVariable makes this binary dial that address instead of testing.
const dialVariable = "EKCO_TEST_DIAL"

func TestMain(m *testing.M) { rig.Main(m, rig.Options{}) }

// runAgain runs one test of this binary as a user would, and returns its output and
// whether it passed.
func runAgain(t *testing.T, test string, env ...string) (output string, passed bool) {
	t.Helper()
	again := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	again.Env = append(os.Environ(), "EKCO_TEST_NAMESPACE=")
	again.Env = append(again.Env, env...)
	content, err := again.CombinedOutput()
	if again.ProcessState == nil {
		t.Fatal(err)
	}
	return string(content), again.ProcessState.Success()
}

// TestDial is what [TestConnectionsToOtherMachinesFailTheTests] runs again.
func TestDial(t *testing.T) {
	address := os.Getenv(dialVariable)
	if address == "" {
		return
	}
	network, address, _ := strings.Cut(address, " ")
	connection, err := (&net.Dialer{Timeout: time.Minute}).Dial(network, address)
	if err == nil {
		_ = connection.Close()
	}
	t.Log(err)
}

func TestConnectionsToOtherMachinesFailTheTests(t *testing.T) {
	// The last three addresses are reserved for documentation: no machine has them.
	for _, test := range []struct {
		address string
		passes  bool
	}{
		{"tcp 127.128.0.1:10250", true},
		{"tcp [::1]:10250", true},
		{"tcp 10.128.0.1:10250", true},
		{"tcp 192.0.2.1:10250", false},
		{"udp 192.0.2.1:53", false},
		{"tcp [2001:db8::1]:10250", false},
	} {
		output, passed := runAgain(t, "TestDial", dialVariable+"="+test.address)
		if passed != test.passes || passed == strings.Contains(output, "outside of the tests' network namespace") {
			t.Errorf("dial %s: passed: %t, want %t\n%s", test.address, passed, test.passes, output)
		}
	}
}

// nodeVariable makes TestNode send a packet to this address. forwardVariable is 1 if the namespace of the tests
// forwards packets.
const (
	nodeVariable    = "EKCO_TEST_SEND"
	forwardVariable = "EKCO_TEST_FORWARD"
)

// TestNode is what [TestPacketsOfNodesToOtherMachinesFailTheTests] runs again.
func TestNode(t *testing.T) {
	address := os.Getenv(nodeVariable)
	if address == "" {
		return
	}
	// The connection, which is refused, is answered after the packet was handled: with its last process the
	// node's namespace ends, and a packet that is still on its way is lost.
	const script = `set -e
echo "$` + forwardVariable + `" >/proc/sys/net/ipv4/ip_forward
ip link add node-0 type veth peer name node-1
ip addr add 172.30.0.1/24 dev node-0
ip link set node-0 up
unshare --net sh -c 'echo; read line; bash -c "echo > /dev/udp/$0/53" && ! bash -c ": > /dev/tcp/172.30.0.1/1"' "$0" <"$1/in" >"$1/out" &
exec 3>"$1/in" 4<"$1/out"
read line <&4
ip link set node-1 netns $!
nsenter -t $! -n sh -e -c 'ip addr add 172.30.0.2/24 dev node-1; ip link set node-1 up; ip route add default via 172.30.0.1'
echo >&3
wait $!`
	dir := t.TempDir()
	for _, name := range []string{"in", "out"} {
		if err := unix.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := exec.Command("bash", "-c", script, address, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

func TestPacketsOfNodesToOtherMachinesFailTheTests(t *testing.T) {
	for address, passes := range map[string]bool{"172.30.0.1": true, "192.0.2.1": false} {
		for _, forward := range []string{"0", "1"} {
			output, passed := runAgain(t, "TestNode", nodeVariable+"="+address, forwardVariable+"="+forward)
			if passed != passes {
				t.Errorf("a packet to %s, forwarding %s: passed: %t, want %t\n%s", address, forward, passed, passes, output)
			}
		}
	}
}

// TestNetwork is what [TestAForgedVariableDoesNotTurnIsolationOff] runs again.
func TestNetwork(t *testing.T) {
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Name != "lo" {
			t.Errorf("there is an interface %s", i.Name)
		}
	}
}

func TestAForgedVariableDoesNotTurnIsolationOff(t *testing.T) {
	if output, passed := runAgain(t, "TestNetwork", "EKCO_TEST_NAMESPACE=net:[1]"); !passed {
		t.Error(output)
	}
}
