package observers

import (
	"slices"
	"sync/atomic"
)

// Nudge has sources look at once when EKCO itself has changed what they see, for
// those that would otherwise see it at their next poll only. The zero Nudge has none
// and is ready for use; it is safe for concurrent use.
type Nudge struct {
	sources atomic.Pointer[[]Source]
}

// Over says which sources are to look from now on, and returns them.
func (n *Nudge) Over(sources ...Source) []Source {
	n.sources.Store(&sources)
	return sources
}

// Also adds sources that are to look, and returns them.
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

// Look has all of them look.
func (n *Nudge) Look() {
	if sources := n.sources.Load(); sources != nil {
		for _, source := range *sources {
			source.Look()
		}
	}
}
