package loadbalancertest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	loadbalancertest "github.com/replicatedhq/ekco/test/loadbalancer"
)

// haproxies are those that judge, the oldest first.
var haproxies []loadbalancertest.HAProxy

func TestMain(m *testing.M) {
	var err error
	if haproxies, err = loadbalancertest.Install(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
