package nodes_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench = observerstest.Bench

var (
	watching    = observerstest.Watching
	node        = observerstest.Node
	unreachable = observerstest.Unreachable
	heartbeat   = observerstest.Heartbeat
)
