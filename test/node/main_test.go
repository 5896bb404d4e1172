package nodetest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/version"
)

// Archives of images: EKCO's, and that of a program that stands for it in host tasks.
var image, taskImage string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := prepareAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func prepareAndRun(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "ekco-node-test-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if image, err = Build(context.Background(), "../..", dir, version.Get().Version); err != nil {
		return 0, err
	}
	taskImage = filepath.Join(dir, "task.tar")
	if err := buildImage(context.Background(), "../..", "task", "usr/bin/ekco", taskImage); err != nil {
		return 0, err
	}
	if code = m.Run(); code != 0 {
		return code, nil
	}
	return 0, goleak.Find()
}
