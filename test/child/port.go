package child

import (
	"context"
	"net"
	"syscall"
)

// Free returns an error if a TCP address is in use. It prevents forks: until its exec, a new process would
// hold a copy of the listening socket, and keep the address in use.
func Free(ctx context.Context, address string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}
