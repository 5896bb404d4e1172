// Package serving has what EKCO's HTTP servers share: a limit of connections, and an orderly stop.
package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// StopTimeout is how long running requests may take to end when a server stops.
const StopTimeout = 3 * time.Second

// Until serves until ctx ends. Then running requests have [StopTimeout] to end. It closes the listener, and returns nil
// after an orderly stop.
func Until(ctx context.Context, server *http.Server, listener net.Listener) error {
	var stopping sync.WaitGroup
	served := make(chan struct{})
	stopping.Go(func() {
		select {
		case <-ctx.Done():
		case <-served:
			return
		}
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
		defer cancel()
		if err := server.Shutdown(wait); err != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(listener)
	close(served)
	stopping.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return errors.Join(fmt.Errorf("serve %s: %w", listener.Addr(), err), server.Close())
}
