package journal

import "slices"

// MinioMoves returns the replicas on one crowded node. One of them should move so that all replicas are spread evenly
// over the ready nodes. It returns no replicas if they are spread evenly, or if no node is ready.
func MinioMoves(pods []MinioPod, ready int) []MinioPod {
	byNode := map[string][]MinioPod{}
	var nodes []string
	placed := 0
	for _, pod := range pods {
		if pod.Node == "" {
			continue
		}
		if byNode[pod.Node] == nil {
			nodes = append(nodes, pod.Node)
		}
		byNode[pod.Node] = append(byNode[pod.Node], pod)
		placed++
	}
	if ready <= 0 || placed == 0 {
		return nil
	}
	slices.Sort(nodes)
	maxPerNode, minPerNode := (placed+ready-1)/ready, placed/ready
	firstNodeWhere := func(isCrowded func(n int) bool) []MinioPod {
		for _, node := range nodes {
			if isCrowded(len(byNode[node])) {
				return byNode[node]
			}
		}
		return nil
	}
	if moves := firstNodeWhere(func(n int) bool { return n > maxPerNode }); moves != nil {
		return moves
	}
	if slices.ContainsFunc(nodes, func(node string) bool { return len(byNode[node]) < minPerNode }) {
		if moves := firstNodeWhere(func(n int) bool { return n == maxPerNode }); moves != nil {
			return moves
		}
	}
	if ready > len(nodes) {
		return firstNodeWhere(func(n int) bool { return n > 1 })
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
