package fsm

// oneByOne is how many nodes of a rollout are changed one by one before batches grow.
const oneByOne = 3

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
