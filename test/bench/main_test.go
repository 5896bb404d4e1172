package bench

import (
	"testing"

	"github.com/replicatedhq/ekco/test/rig"
)

func TestMain(m *testing.M) {
	rig.Main(m, rig.Options{Fetch: []string{"../controlplane/build.sh", "../ceph/install.sh"}, SkipGoroutineCheck: true})
}
