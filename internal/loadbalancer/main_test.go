package loadbalancer

import (
	"os"
	"testing"

	"github.com/replicatedhq/ekco/internal/sim/tempdir"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	os.Exit(m.Run())
}
