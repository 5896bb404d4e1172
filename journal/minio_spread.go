package journal

import "slices"

// MinioMoves returns replicas of which one should move for an even spread over the given number of ready nodes; none
// if they are spread evenly, or no node is ready. Each has a node.
func MinioMoves(pods []MinioPod, ready int) []MinioPod {
	on := map[string][]MinioPod{}
	var nodes []string
	placed := 0
	for _, pod := range pods {
		if pod.Node == "" {
			continue
		}
		if on[pod.Node] == nil {
			nodes = append(nodes, pod.Node)
		}
		on[pod.Node] = append(on[pod.Node], pod)
		placed++
	}
	if ready <= 0 || placed == 0 {
		return nil
	}
	slices.Sort(nodes)
	most, least := (placed+ready-1)/ready, placed/ready
	first := func(crowded func(n int) bool) []MinioPod {
		for _, node := range nodes {
			if crowded(len(on[node])) {
				return on[node]
			}
		}
		return nil
	}
	if moves := first(func(n int) bool { return n > most }); moves != nil {
		return moves
	}
	if slices.ContainsFunc(nodes, func(node string) bool { return len(on[node]) < least }) {
		if moves := first(func(n int) bool { return n == most }); moves != nil {
			return moves
		}
	}
	if ready > len(nodes) {
		return first(func(n int) bool { return n > 1 })
	}
	return nil
}

// MinioQuorum is the most drives that a write needs, of the given number.
func MinioQuorum(drives int) int { return drives/2 + 1 }

// Pod returns the replica of that UID, and whether there is one.
func (f MinioFacts) Pod(uid string) (MinioPod, bool) {
	for _, pod := range f.Pods {
		if pod.UID == uid {
			return pod, true
		}
	}
	return MinioPod{}, false
}

// Complete reports whether all replicas run.
func (f MinioFacts) Complete() bool {
	return len(f.Pods) == f.Replicas && !slices.ContainsFunc(f.Pods, func(pod MinioPod) bool { return pod.State != MinioPodRuns })
}

// MayLoseOne reports whether more than a quorum of the replicas would still run without one of the running ones.
func (f MinioFacts) MayLoseOne(quorum int) bool {
	running := 0
	for _, pod := range f.Pods {
		if pod.State == MinioPodRuns {
			running++
		}
	}
	return running-1 >= quorum+1
}
