package image

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/version"
	containerdtest "github.com/replicatedhq/ekco/test/containerd"
)

// What containerd on a node is asked for.
const repository = "docker.io/replicated/ekco"

// commit and epoch stand for those of a commit.
const (
	commit = "0123456789ab"
	epoch  = 1_790_000_000
)

var (
	name = repository + ":" + version.Get().Version
	// dir has the archives under test.
	dir string
)

var architectures = []string{"amd64", "arm64"}

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
	if err := containerdtest.Install(context.Background(), "../containerd"); err != nil {
		return 0, err
	}
	if dir, err = os.MkdirTemp("", "ekco-image-test-"); err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := build("../..", dir); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, goleak.Find()
}

// build builds the image from a directory of EKCO's module.
func build(source, out string, env ...string) error {
	command := exec.CommandContext(context.Background(), filepath.Join(source, "deploy/image/build.sh"), out)
	command.Env = append(os.Environ(), "VERSION="+version.Get().Version, "GIT_SHA="+commit, fmt.Sprint("SOURCE_DATE_EPOCH=", epoch))
	command.Env = append(command.Env, env...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("build the image from %s: %w", source, err)
	}
	return nil
}

// file is one of the results.
func file(rest string) string {
	return filepath.Join(dir, "ekco-"+version.Get().Version+rest)
}
