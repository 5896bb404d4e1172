package loadbalancertest_test

import (
	"context"
	"testing"

	loadbalancertest "github.com/replicatedhq/ekco/test/loadbalancer"
	"github.com/replicatedhq/ekco/test/rig"
)

// haproxies are those that judge, the oldest first.
var haproxies []loadbalancertest.HAProxy

func TestMain(m *testing.M) {
	rig.Main(m, rig.Options{
		Fetch: []string{"./install.sh bookworm", "./install.sh trixie"},
		Prepare: func(ctx context.Context, _ string) (err error) {
			haproxies, err = loadbalancertest.Install(ctx, ".")
			return err
		},
		Parallel: 6, // which mostly wait for HAProxy's checks
	})
}
