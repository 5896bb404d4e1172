package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/rig"
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
	rig.Main(m, rig.Options{
		Fetch: []string{
			"../containerd/install.sh", "../../deploy/image/base.sh amd64", "../../deploy/image/base.sh arm64",
			"go -C ../../deploy/image build -o /dev/null .", rig.EKCOModules,
		},
		Prepare: func(_ context.Context, at string) error {
			dir = at
			return build("../..", dir)
		},
	})
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
