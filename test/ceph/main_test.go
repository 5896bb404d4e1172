package ceph_test

import (
	"testing"

	"github.com/replicatedhq/ekco/test/rig"
)

// Three tests at once: they mostly wait for daemons, so it may be more than there are cores.
func TestMain(m *testing.M) { rig.Main(m, rig.Options{Fetch: []string{"./install.sh"}, Parallel: 3}) }
