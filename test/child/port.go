package child

import (
	"context"
	"net"
	"syscall"
)

// Free returns an error if somebody listens on a TCP address. No program is started meanwhile: until it
// executes, it would have a copy of the socket that asks, and the address would be in use after Free.
func Free(ctx context.Context, address string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}
