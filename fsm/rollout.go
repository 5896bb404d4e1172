package fsm

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// oneByOne is how many nodes of a rollout are changed one by one before batches grow.
const oneByOne = 3

// IsOneByOne reports whether the next node of a rollout is one of the first, given how many are done. Checks and
// trials that cost a pod are limited to these.
func IsOneByOne(done int) bool { return done < oneByOne }

// RolloutBatch returns how many nodes a rollout may change at the same time, given how many are verified:
// one for each of the first three, then 2, 4, 8 and so on, up to limit.
func RolloutBatch(verified, limit int) int {
	batch := 1
	for next := oneByOne; next <= verified && batch < limit; next += batch {
		batch *= 2
	}
	return min(batch, limit)
}

// RolloutRule returns a capability's rule that refuses to change further nodes while one is worse off after
// its change. stopped names that node, what is wrong and what to do; it returns "" if there is none.
func RolloutRule(name string, stopped func(w *World) string) Rule {
	return Rule{
		Name: name, Cluster: true, ToBegin: true, NeedsPerson: true,
		Refuses: func(w *World, _ *Thing, _ *ActionKind) bool { return stopped(w) != "" },
		Reason:  func(w *World, _ *Thing, _ *ActionKind) string { return stopped(w) },
	}
}

// StoppedBy returns why an open action stops a rollout, and what to do; "" if it does not. thing is what the action
// changes, and repair says how to make it ready. ready is set if it is ready, or if its change has not begun. broken
// says what else does not work, or is "".
func StoppedBy(rec *journal.ActionRecord, thing, repair string, ready bool, broken string) string {
	switch {
	case !ready:
		return fmt.Sprintf("%s stopped being ready while %s changed it; %s, or run \"ekco cancel %s\": then EKCO changes the others", thing, rec.ID, repair, rec.ID)
	case broken != "":
		return fmt.Sprintf("%s; repair the cause and run \"ekco retry %s\", or run \"ekco cancel %s\": then EKCO changes the others", broken, rec.ID, rec.ID)
	}
	return ""
}

// blameTime is how long after its end a change is blamed if its thing stops being ready. Kubernetes notices a lost
// node only 40 s after the kubelet's last renewal (node-monitor-grace-period), and a kubelet can keep using an old
// connection for a while.
const blameTime = 5 * time.Minute

// LostSoonAfter reports whether a change may be why a thing was ready and is not now. changed is when the change
// ended, or zero. A machine visits that time in its Ages, so that the time in which EKCO was not running does
// not count: the change may have stopped EKCO's own node.
func LostSoonAfter(changed time.Time, was, is bool, now time.Time) bool {
	return was && !is && now.Sub(changed) < blameTime
}
