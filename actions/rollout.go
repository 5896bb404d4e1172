package actions

import "github.com/replicatedhq/ekco/fsm"

// RolloutBatches divides a known list of nodes into batches without changing the order.
func RolloutBatches[T any](all []T, limit int) (batches [][]T) {
	for done := 0; done < len(all); {
		end := min(done+fsm.RolloutBatch(done, limit), len(all))
		batches, done = append(batches, all[done:end]), end
	}
	return batches
}

// IsOneByOne calls [fsm.IsOneByOne].
func IsOneByOne(done int) bool { return fsm.IsOneByOne(done) }
