package clear_test

import (
	"testing"

	"github.com/replicatedhq/ekco/actions/clear"
	"github.com/replicatedhq/ekco/actions/nodes/nodestest"
	"github.com/replicatedhq/ekco/journal"
)

func TestTheLiveNodeIsJudgedWhateverIsOnRecordOfIt(t *testing.T) {
	nodestest.LiveNodeIsJudged(t, clear.New, func(_ journal.NodeFacts, pods []journal.PodRef) any {
		return journal.ClearInput{Pods: pods}
	})
}
