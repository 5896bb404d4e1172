package parallel

import "sync"

// Group is functions that run in parallel. The zero value is ready for use. It must not be copied after its
// first use.
type Group struct {
	running sync.WaitGroup
	mu      sync.Mutex
	first   *PanicError
}

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func()) {
	g.running.Go(func() {
		if caught := Catch(f); caught != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.first == nil {
				g.first = caught
			}
		}
	})
}

// Wait waits until all functions have ended, and returns the first panic, or nil. The caller must raise or
// report it.
func (g *Group) Wait() *PanicError {
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first
}

// Run runs functions in parallel, waits for all of them, and then panics with a *[PanicError] if any of them
// did.
func Run(functions ...func()) {
	var all Group
	for _, f := range functions {
		all.Go(f)
	}
	all.Wait().Raise()
}
