package nodes

import (
	"maps"
	"time"

	"github.com/replicatedhq/ekco/observers"
)

// relabelling limits how often changes of a node's labels are recorded, by the node's UID: a client may change them
// often, and losses of the node must still be recorded.
type relabelling struct{ observers.Allowance }

func retells() relabelling {
	return relabelling{observers.Allowance{Burst: 5, Every: 5 * time.Minute}}
}

// judge keeps the recorded labels if they were recorded too often.
func (r *relabelling) judge(was *node, toRecord node, again, at time.Time) (node, time.Time) {
	r.Forget(at)
	if was == nil || maps.Equal(was.facts.Labels, toRecord.facts.Labels) || r.Take(toRecord.uid, at) {
		return toRecord, again
	}
	toRecord.facts.Labels = was.facts.Labels
	if next := r.Next(toRecord.uid); again.IsZero() || next.Before(again) {
		again = next
	}
	return toRecord, again
}
