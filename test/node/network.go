package nodetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// gateway is this machine's address for all nodes, each of which is connected by a veth pair.
const gateway = "172.30.0.1"

// network is the network of one node.
type network struct {
	// number identifies the node on this machine.
	number int
}

func (n network) device() string { return fmt.Sprintf("ekcotest%d", n.number) }

// address returns the node's address.
func (n network) address() string { return fmt.Sprintf("172.30.0.%d", n.number+1) }

func (n network) ip() net.IP { return net.ParseIP(n.address()) }

// pods returns the range of the addresses of the node's pods.
func (n network) pods() string { return fmt.Sprintf("10.245.%d.0/24", n.number) }

// routeNodes forwards packets between nodes. Packets to a node without power go to a veth device that no process reads.
// So they are lost, as in reality, and do not count as packets to another machine.
var routeNodes = sync.OnceValue(func() error {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	for _, command := range []string{
		"link add ekcolost type veth peer name ekcolost-end", "link set ekcolost arp off up", "link set ekcolost-end arp off up",
		"route add 172.30.0.0/16 dev ekcolost", "route add 10.245.0.0/16 dev ekcolost",
	} {
		if output, err := exec.CommandContext(context.Background(), "ip", strings.Fields(command)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", command, err, output)
		}
	}
	return nil
})

// connect creates a veth pair between this machine and the network namespace of a node's first process. The pair
// disappears when that process ends.
func (n network) connect(tb testing.TB, m *machine) {
	tb.Helper()
	if err := routeNodes(); err != nil {
		tb.Fatal(err)
	}
	run(tb, "ip", "link", "add", n.device(), "type", "veth", "peer", "name", "eth0", "netns", strconv.Itoa(m.first))
	for _, command := range []string{
		"address add " + gateway + "/32 dev " + n.device(), "link set " + n.device() + " up",
		"route add " + n.address() + " dev " + n.device() + " src " + gateway,
		"route add " + n.pods() + " via " + n.address() + " dev " + n.device() + " onlink src " + gateway,
	} {
		run(tb, "ip", strings.Fields(command)...)
	}
	for _, command := range []string{
		"address add " + n.address() + "/32 dev eth0", "link set eth0 up",
		"route add " + gateway + " dev eth0", "route add default via " + gateway + " dev eth0 onlink",
	} {
		run(tb, "nsenter", m.within(append([]string{"ip"}, strings.Fields(command)...))...)
	}
}

// numbers has the numbers that this process has assigned to nodes, because parallel tests may search for a number
// before either has its veth pair.
var numbers struct {
	sync.Mutex
	given map[int]bool
}

// freeNumber returns a number that no node on this machine has, and that this process has not assigned before.
func freeNumber(tb testing.TB) int {
	tb.Helper()
	numbers.Lock()
	defer numbers.Unlock()
	links, err := net.Interfaces()
	if err != nil {
		tb.Fatal(err)
	}
	taken := make(map[string]bool)
	for _, link := range links {
		taken[link.Name] = true
	}
	for number := 1; number < 255; number++ {
		if numbers.given[number] || taken[network{number}.device()] {
			continue
		}
		if numbers.given == nil {
			numbers.given = map[int]bool{}
		}
		numbers.given[number] = true
		return number
	}
	tb.Fatal("no free network for a node")
	return 0
}

func run(tb testing.TB, name string, args ...string) {
	tb.Helper()
	if output, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, output)
	}
}

// forwarder lets nodes reach an API server that listens on this machine's loopback.
type forwarder struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	shut     bool
	open     map[net.Conn]bool
	all      sync.WaitGroup
}

// startForwarder listens on the gateway until the test ends. The first node must already have its veth pair.
func startForwarder(tb testing.TB, target string) *forwarder {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", gateway+":0")
	if err != nil {
		tb.Fatal(err)
	}
	f := &forwarder{listener: listener, target: target, open: map[net.Conn]bool{}}
	f.all.Go(f.accept)
	tb.Cleanup(f.close)
	return f
}

func (f *forwarder) port() int { return f.listener.Addr().(*net.TCPAddr).Port }

func (f *forwarder) accept() {
	for {
		from, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.all.Go(func() { f.pass(from) })
	}
}

// pass copies bytes in both directions until either end is closed.
func (f *forwarder) pass(from net.Conn) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", f.target)
	if err != nil {
		return
	}
	defer to.Close()
	if !f.keep(from, to) {
		return
	}
	defer f.forget(from, to)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // it ends when either end is closed
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

func (f *forwarder) keep(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		f.open[conn] = true
	}
	return !f.shut
}

func (f *forwarder) forget(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range conns {
		delete(f.open, conn)
	}
}

func (f *forwarder) close() {
	f.mu.Lock()
	f.shut = true
	for conn := range f.open {
		_ = conn.Close()
	}
	f.mu.Unlock()
	_ = f.listener.Close()
	f.all.Wait()
}
