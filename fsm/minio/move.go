package minio

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// lacking is a replica whose volume is on no node.
type lacking struct {
	UID string `json:"uid"`
	// Since is when EKCO first saw that the volume is on no node, by EKCO's clock. Seq is the event with that fact.
	Since time.Time `json:"since"`
	Seq   uint64    `json:"seq"`
}

// updateLacking updates Lacking after new facts. It keeps Since of replicas that were already in the list.
func (m *MinIO) updateLacking(e journal.Event) {
	var now []lacking
	for _, pod := range m.Pods {
		if pod.State != journal.MinioPodLacksVolume {
			continue
		}
		was := slices.IndexFunc(m.Lacking, func(l lacking) bool { return l.UID == pod.UID })
		if was < 0 {
			now = append(now, lacking{pod.UID, e.Time, e.Seq})
		} else {
			now = append(now, m.Lacking[was])
		}
	}
	m.Lacking = now
}

// wantMove calls want with the move of a replica to another node. Replicas whose node no longer exists, or that have
// had no volume for long enough, come first. If all replicas run, one is moved to spread them evenly. While no node is
// ready, wantMove wants nothing.
func wantMove(t *fsm.Thing, w *fsm.World, want func(fsm.Want)) {
	m := of(t)
	_, ready := w.Count(nodeMachine)
	others := openActions(t, w, journal.ActionMoveMinio)
	if ready == 0 || slices.ContainsFunc(others, func(rec *journal.ActionRecord) bool { return rec.Stalled == nil }) {
		return
	}
	pod, due := m.replicaToMove(w, ready)
	if pod.UID == "" || slices.ContainsFunc(others, func(rec *journal.ActionRecord) bool { return movedPod(rec).UID == pod.UID }) {
		return
	}
	at, may := t.RetryChange(journal.ActionMoveMinio, of(t).Made[journal.ActionMoveMinio], w.Policy)
	if !may {
		return
	}
	if at.After(due) {
		due = at
	}
	want(fsm.Want{Kind: journal.ActionMoveMinio, Due: due, Rank: t.Since, Change: &journal.Change{
		Key: placeKeyPrefix + pod.Name, Field: "the place of " + pod.Name, From: cmp.Or(pod.Node, "no node"), To: "another",
	}})
}

// nodeMachine is the name of the machine of nodes.
const nodeMachine = "node"

// placeKeyPrefix is the first part of the keys of changes that move a replica.
const placeKeyPrefix = "place of "

// replicaToMove returns the replica to move, and when the move is due. The pod has no UID if no replica must move.
func (m *MinIO) replicaToMove(w *fsm.World, ready int) (pod journal.MinioPod, due time.Time) {
	for _, pod := range m.Pods {
		if pod.Node != "" && pod.State != journal.MinioPodRuns && isNodeGone(w, pod.Node) {
			return pod, time.Time{}
		}
	}
	if len(m.Lacking) > 0 {
		first := slices.MinFunc(m.Lacking, func(a, b lacking) int { return a.Since.Compare(b.Since) })
		pod, _ := m.Pod(first.UID)
		return pod, first.Since.Add(volumeWait(w.PolicyOf(Machine)))
	}
	quorum := journal.MinioQuorum(max(m.Replicas, m.Desired))
	if m.Replicas != m.Desired || !m.Complete() || !m.MayLoseOne(quorum) || slices.ContainsFunc(m.Pods, func(pod journal.MinioPod) bool { return isNodeLost(w, pod.Node) }) {
		return journal.MinioPod{}, time.Time{}
	}
	if moves := journal.MinioMoves(m.Pods, ready); len(moves) > 0 {
		return moves[0], time.Time{}
	}
	return journal.MinioPod{}, time.Time{}
}

// isNodeGone reports whether the node does not exist. isNodeLost also returns true if the node is unreachable.
func isNodeGone(w *fsm.World, name string) bool {
	return !slices.ContainsFunc(w.Named(nodeMachine, name), func(key string) bool { return w.Things[key].GoneSeq == 0 })
}

func isNodeLost(w *fsm.World, name string) bool {
	return !slices.ContainsFunc(w.Named(nodeMachine, name), func(key string) bool {
		t := w.Things[key]
		data, ok := t.Data.(interface{ Lost() bool })
		return ok && t.GoneSeq == 0 && !data.Lost()
	})
}

func requestMove(t *fsm.Thing, w *fsm.World) journal.ActionRequested {
	m := of(t)
	_, ready := w.Count(nodeMachine)
	pod, _ := m.replicaToMove(w, ready)
	reason := fmt.Sprintf("replica %s has waited %s to start, because no node has its volume", pod.Name, words.Span(volumeWait(w.PolicyOf(Machine))))
	switch {
	case pod.State == journal.MinioPodRuns:
		reason = fmt.Sprintf("%d replicas on %d ready nodes are not spread evenly, and %s is one of %d on %s", len(m.Pods), ready, pod.Name, m.replicasOn(pod.Node), pod.Node)
	case pod.Node != "":
		reason = fmt.Sprintf("node %s of replica %s is gone", pod.Node, pod.Name)
	}
	return journal.ActionRequested{Reason: reason, Input: journal.MinioMove{Pod: pod}}
}

func (m *MinIO) replicasOn(node string) (n int) {
	for _, pod := range m.Pods {
		if pod.Node == node {
			n++
		}
	}
	return n
}

func movedPod(rec *journal.ActionRecord) journal.MinioPod {
	asked, err := journal.InputOf[journal.MinioMove](rec.Request)
	if err != nil {
		return journal.MinioPod{}
	}
	return asked.Pod
}

// obsoleteMove returns why a move that has not begun is no longer needed, because the replica has changed; or "".
func obsoleteMove(t *fsm.Thing, rec *journal.ActionRecord) string {
	was := movedPod(rec)
	now, there := of(t).Pod(was.UID)
	switch {
	case was.UID == "":
		return ""
	case !there:
		return fmt.Sprintf("replica %s is another pod now", was.Name)
	case now.State != was.State || now.Node != was.Node:
		return fmt.Sprintf("replica %s %s now", was.Name, now.State)
	case was.State == journal.MinioPodRuns && !of(t).Complete():
		return "not all replicas run any more"
	}
	return ""
}

// disputedMove returns the message for a replica that must be moved again and again.
func disputedMove(t *fsm.Thing, change *journal.Change) (what, advice string) {
	return fmt.Sprintf("EKCO moves a replica (%s), and each time it has to be moved again", change.Field),
		fmt.Sprintf("run \"kubectl describe pod\" on it, in the namespace of %s, and check that all nodes have room for a replica and a volume", t.Name)
}
