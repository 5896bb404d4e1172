package observers

import (
	"slices"
	"sync/atomic"
)

// Nudge makes sources read at once after EKCO itself changed something, instead of at their next poll. The zero Nudge
// is ready for use. It is safe for concurrent use.
type Nudge struct {
	sources atomic.Pointer[[]Source]
}

// Over sets the sources, and returns them.
func (n *Nudge) Over(sources ...Source) []Source {
	n.sources.Store(&sources)
	return sources
}

// Also adds sources, and returns them.
func (n *Nudge) Also(sources ...Source) []Source {
	for {
		before := n.sources.Load()
		all := sources
		if before != nil {
			all = slices.Concat(*before, sources)
		}
		if n.sources.CompareAndSwap(before, &all) {
			return sources
		}
	}
}

// Look makes all sources read at once.
func (n *Nudge) Look() {
	if sources := n.sources.Load(); sources != nil {
		for _, source := range *sources {
			source.Look()
		}
	}
}
