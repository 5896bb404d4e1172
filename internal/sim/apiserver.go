package sim

import (
	"context"
	"fmt"
	"sync"

	"github.com/replicatedhq/ekco/internal/kube"
)

// APIServer controls a simulated Kubernetes API. Make one with [NewAPIServer]. Its methods are safe for
// concurrent use.
type APIServer struct {
	Controls

	mu        sync.Mutex
	outage    bool
	forbidden map[string]bool
}

// NewAPIServer returns an API server that answers at once and allows everything.
func NewAPIServer() APIServer {
	return APIServer{Controls: NewControls(kube.ErrUnavailable), forbidden: make(map[string]bool)}
}

// Outage stops the API, or starts it again.
func (a *APIServer) Outage(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outage = down
}

// Forbid removes permissions.
func (a *APIServer) Forbid(verbs ...string) { a.permit(true, verbs) }

// Allow restores permissions.
func (a *APIServer) Allow(verbs ...string) { a.permit(false, verbs) }

func (a *APIServer) permit(forbid bool, verbs []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, verb := range verbs {
		a.forbidden[verb] = forbid
	}
}

// Reach takes the time of a call, and returns an error if it does not reach the API.
func Reach(ctx context.Context, a *APIServer, verb string) error {
	if err := Pass(ctx, &a.Controls); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.outage:
		return fmt.Errorf("%s: %w", verb, kube.ErrUnavailable)
	case a.forbidden[verb]:
		return fmt.Errorf("%s: %w", verb, kube.ErrForbidden)
	}
	return nil
}

// Change is [Do] for a call that must reach the API first.
func Change(ctx context.Context, a *APIServer, verb, effect string, f func() (changed bool, err error)) error {
	if err := Reach(ctx, a, verb); err != nil {
		return err
	}
	return Do(&a.Controls, verb, effect, f)
}
