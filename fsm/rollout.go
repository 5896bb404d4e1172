package fsm

// oneByOne is how many nodes of a rollout are changed one by one, before more than one is at a time.
const oneByOne = 3

// RolloutBatch returns how many nodes a rollout may change at a time, given how many it has changed
// and verified so far: one for each of the first three, then 2, 4, 8 and so on, and at most limit.
func RolloutBatch(verified, limit int) int {
	batch := 1
	for next := oneByOne; next <= verified && batch < limit; next += batch {
		batch *= 2
	}
	return min(batch, limit)
}

// RolloutBatches divides nodes that are known beforehand into batches, in their order. Each is begun
// when the one before it is verified.
func RolloutBatches[T any](nodes []T, limit int) (batches [][]T) {
	for done := 0; done < len(nodes); {
		end := min(done+RolloutBatch(done, limit), len(nodes))
		batches, done = append(batches, nodes[done:end]), end
	}
	return batches
}

// RolloutRule is the rule of a capability that no node is changed while another one is worse off
// since its change. stopped names that node, and says what is wrong and what to do; "" is for none.
func RolloutRule(name string, stopped func(w *World) string) Rule {
	return Rule{
		Name: name, Cluster: true, ToBegin: true, NeedsPerson: true,
		Refuses: func(w *World, _ *Thing, _ *ActionKind) bool { return stopped(w) != "" },
		Reason:  func(w *World, _ *Thing, _ *ActionKind) string { return stopped(w) },
	}
}
