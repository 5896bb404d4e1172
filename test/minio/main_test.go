package miniotest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	miniotest "github.com/replicatedhq/ekco/test/minio"
	"github.com/replicatedhq/ekco/test/rig"
)

// programs are those under test.
var programs miniotest.Programs

func TestMain(m *testing.M) {
	// As a child of a benchmark this program copies, and tests nothing.
	if order := os.Getenv(orderVariable); order != "" {
		if err := obey(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	rig.Main(m, rig.Options{
		Fetch: []string{"server/build.sh"},
		Prepare: func(ctx context.Context, _ string) (err error) {
			programs, err = miniotest.Build(ctx, ".")
			return err
		},
		Parallel: 4, // they mostly wait for servers
	})
}
