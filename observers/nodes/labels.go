package nodes

import (
	"maps"
	"time"

	"github.com/replicatedhq/ekco/observers"
)

// labelLimit limits how often changes of a node's labels are recorded, by the node's UID. A client may change labels
// often, but losses of the node must still be recorded.
type labelLimit struct{ observers.Allowance }

func newLabelLimit() labelLimit {
	return labelLimit{observers.Allowance{Burst: 5, Every: 5 * time.Minute}}
}

// limitLabels keeps the recorded labels if labels were recorded too often.
func (r *labelLimit) limitLabels(was *node, toRecord node, again, at time.Time) (node, time.Time) {
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
