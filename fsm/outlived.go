package fsm

import (
	"slices"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// noteOutlived marks what EKCO began for the loss that counted from former, if
// that has ended: the node is back, or lost anew. Both can come in one batch of
// facts, so that nobody decides in between.
func (s *State) noteOutlived(n *Node, former time.Time) {
	if former.IsZero() || n.UnreachableSince.Equal(former) {
		return
	}
	for _, id := range sortedKeys(s.Actions) {
		rec := s.Actions[id]
		if rec.Subject.UID == n.UID && !rec.ByPerson() && !slices.Contains(n.Outlived, id) {
			n.Outlived = append(n.Outlived, id)
		}
	}
}

// forgetOutlived forgets an action that has ended.
func (n *Node) forgetOutlived(action string) {
	n.Outlived = slices.DeleteFunc(n.Outlived, func(id string) bool { return id == action })
}

// switchedOff says which setting an action that EKCO began by itself is against, or
// "" if there is none. A command that works without an operator has settings of its
// own, which are not the operator's.
func (v *view) switchedOff(rec *journal.ActionRecord) string {
	kind := v.kind(rec.Kind)
	switch {
	case v.policy.Passive, rec.ByPerson(), rec.PastNoReturn, rec.Unreadable != "":
		return ""
	case kind == nil || kind.SwitchedOff == nil:
		return ""
	}
	return kind.SwitchedOff(v.policy)
}
