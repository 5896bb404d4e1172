package fsm

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// oneByOneLimit is how many nodes a rollout changes one by one before it changes several at the same time.
const oneByOneLimit = 3

// IsOneByOne reports whether a rollout that has changed this many nodes still changes nodes one by one. EKCO runs
// checks and trials that need a pod only on these first nodes.
func IsOneByOne(done int) bool { return done < oneByOneLimit }

// RolloutBatch returns how many nodes a rollout may change at the same time. verified is the number of nodes that are
// changed and verified. The batch is 1 until verified is 3, then 2, 4, 8 and so on, up to limit.
func RolloutBatch(verified, limit int) int {
	batch := 1
	for next := oneByOneLimit; next <= verified && batch < limit; next += batch {
		batch *= 2
	}
	return min(batch, limit)
}

// RolloutRule returns a rule for a capability that stops a rollout while a node is in a worse state after its change.
// stopped returns which node that is, what is wrong and what to do, or "" if no node is.
func RolloutRule(name string, stopped func(w *World) string) Rule {
	return Rule{
		Name: name, Cluster: true, ToBegin: true, NeedsPerson: true,
		Refuses: func(w *World, _ *Thing, _ *ActionKind) bool { return stopped(w) != "" },
		Reason:  func(w *World, _ *Thing, _ *ActionKind) string { return stopped(w) },
	}
}

// StoppedBy returns why an open action stops a rollout and what to do, or "" if it does not stop the rollout. thing is
// the name of the changed thing. repair says how to make the thing ready. ready is set if the thing is ready, or if the
// change has not begun. broken says what else does not work, or is "".
func StoppedBy(rec *journal.ActionRecord, thing, repair string, ready bool, broken string) string {
	switch {
	case !ready:
		return fmt.Sprintf("%s stopped being ready while %s changed it; %s, or run \"ekco cancel %s\": then EKCO changes the others", thing, rec.ID, repair, rec.ID)
	case broken != "":
		return fmt.Sprintf("%s; repair the cause and run \"ekco retry %s\", or run \"ekco cancel %s\": then EKCO changes the others", broken, rec.ID, rec.ID)
	}
	return ""
}

// maxBlameTime is how long after a change EKCO blames the change if the thing stops being ready. Kubernetes notices a
// lost node only 40 s after the kubelet last renewed its lease (node-monitor-grace-period), and a kubelet can keep
// using an old connection for a while.
const maxBlameTime = 5 * time.Minute

// LostSoonAfter reports whether a change may be the reason why a thing was ready (was) and is not ready now (is).
// changed is when the change ended, or zero. The machine must visit changed in its VisitAges, so that time in which
// EKCO did not run does not count: the change may have stopped the node on which EKCO runs.
func LostSoonAfter(changed time.Time, was, is bool, now time.Time) bool {
	return was && !is && now.Sub(changed) < maxBlameTime
}
