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
	// As a child of a benchmark this program copies, and tests nothing.
	if order := os.Getenv(orderVariable); order != "" {
		if err := obey(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var err error
	if programs, err = miniotest.Build(context.Background(), "."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
