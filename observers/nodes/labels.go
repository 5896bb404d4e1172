package nodes

import (
	"maps"
	"time"

	"github.com/replicatedhq/ekco/observers"
)

// relabelling bounds how often the journal is told that the labels of a node changed, by the
// node's UID: somebody may set them as often as they like, and whether a node is lost must be told
// all the same.
type relabelling struct{ observers.Allowance }

func retells() relabelling {
	return relabelling{observers.Allowance{Burst: 5, Every: 5 * time.Minute}}
}

// judge leaves the labels as the journal has them while it was told of them too often.
func (r *relabelling) judge(was *node, told node, again, at time.Time) (node, time.Time) {
	r.Forget(at)
	if was == nil || maps.Equal(was.facts.Labels, told.facts.Labels) || r.Take(told.uid, at) {
		return told, again
	}
	told.facts.Labels = was.facts.Labels
	if next := r.Next(told.uid); again.IsZero() || next.Before(again) {
		again = next
	}
	return told, again
}
