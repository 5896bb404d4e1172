package envoy_test

import (
	"testing"

	"github.com/replicatedhq/ekco/actions/actionstest"
)

func TestTheCrashMatrixOfARestart(t *testing.T) {
	actionstest.Scenes{"restart": {Points: 8, Set: func(bare *actionstest.World) actionstest.Stage {
		w := newWorld(bare)
		w.Watch()
		unreadyEnvoy(w)
		return actionstest.Stage{Kinds: w.kinds, Outcome: w.Outcome, Cluster: w.Cluster}
	}}}.Run(t)
}
