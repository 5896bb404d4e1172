package miniotest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	miniotest "github.com/replicatedhq/ekco/test/minio"
)

// programs are those under test.
var programs miniotest.Programs

func TestMain(m *testing.M) {
	var err error
	if programs, err = miniotest.Build(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
