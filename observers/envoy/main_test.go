package envoy_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/observers/observerstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type bench = observerstest.Bench
