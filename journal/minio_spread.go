package journal

import "slices"

// MinioMoves returns the replicas on one crowded node. One of them should move so that all replicas are spread evenly
// over the ready nodes. It returns no replicas if they are spread evenly, or if no node is ready.
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

// MinioQuorum returns how many of the drives must be online so that every write succeeds.
func MinioQuorum(drives int) int { return drives/2 + 1 }

// Pod returns the replica with this UID, and whether it exists.
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

// MayLoseOne reports whether more replicas than the quorum would still run if one of the running replicas stopped.
func (f MinioFacts) MayLoseOne(quorum int) bool {
	running := 0
	for _, pod := range f.Pods {
		if pod.State == MinioPodRuns {
			running++
		}
	}
	return running-1 >= quorum+1
}
