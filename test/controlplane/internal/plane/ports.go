package plane

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
)

// Ports are searched below the range that Linux uses for outgoing connections
// (from 32768), so that no connection takes a port before the component starts.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// ports are the TCP ports of one control plane, all on 127.0.0.1.
type ports struct {
	etcd, etcdPeer, apiserver, kwok, execServer int

	reservations []net.Listener
}

// reservePorts finds free ports: in sequence from base, or at random if base is 0. An abstract unix socket reserves
// each port until release, so that two control planes never get the same port, even before they listen.
func reservePorts(ctx context.Context, base int) (*ports, error) {
	p := &ports{}
	for i, port := range []*int{&p.apiserver, &p.etcd, &p.etcdPeer, &p.kwok, &p.execServer} {
		var err error
		if base != 0 {
			*port = base + i
			err = p.reserve(ctx, *port)
		} else {
			*port, err = p.reserveAny(ctx)
		}
		if err != nil {
			p.release()
			return nil, err
		}
	}
	return p, nil
}

func (p *ports) reserveAny(ctx context.Context) (int, error) {
	var err error
	for range 200 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if err = p.reserve(ctx, port); err == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d after 200 attempts: %w", lowestPort, highestPort, err)
}

func (p *ports) reserve(ctx context.Context, port int) error {
	var config net.ListenConfig
	reservation, err := config.Listen(ctx, "unix", fmt.Sprintf("@ekco-controlplane-port-%d", port))
	if err != nil {
		return fmt.Errorf("port %d is taken by another control plane: %w", port, err)
	}
	// Prevent forks: until its exec, a new process would hold a copy of the socket, and keep the port taken.
	syscall.ForkLock.RLock()
	probe, err := config.Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		err = probe.Close()
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		_ = reservation.Close()
		return fmt.Errorf("port %d is taken: %w", port, err)
	}
	p.reservations = append(p.reservations, reservation)
	return nil
}

func (p *ports) release() {
	for _, reservation := range p.reservations {
		_ = reservation.Close()
	}
	p.reservations = nil
}

func (p *ports) server() string { return fmt.Sprintf("https://127.0.0.1:%d", p.apiserver) }

// write writes one name=port line per port.
func (p *ports) write(path string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "kube-apiserver=%d\netcd=%d\netcd-peer=%d\nkwok=%d\nexec-server=%d\n",
		p.apiserver, p.etcd, p.etcdPeer, p.kwok, p.execServer)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("cannot write the list of ports: %w", err)
	}
	return nil
}
