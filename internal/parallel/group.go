package parallel

import "sync"

// Group is functions that run at the same time. Its zero value has none. It must
// not be copied after its first use.
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

// Wait waits until all functions have come to their end, and returns the first
// panic, or nil. The caller raises it, or reports it.
func (g *Group) Wait() *PanicError {
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first
}

// Run runs functions at the same time, waits for all of them, and then panics
// with a *[PanicError] if any of them did.
func Run(functions ...func()) {
	var all Group
	for _, f := range functions {
		all.Go(f)
	}
	all.Wait().Raise()
}
