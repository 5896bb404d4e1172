package kurladdon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/rig"
)

// program and controlplane are the paths of the programs that TestMain builds.
var program, controlplane string

func TestMain(m *testing.M) {
	rig.Main(m, rig.Options{
		Fetch: []string{"./install.sh", "../controlplane/build.sh", rig.EKCOModules},
		Prepare: func(ctx context.Context, dir string) (err error) {
			program = filepath.Join(dir, "ekco")
			if err := rig.BuildEKCO(ctx, "../..", program); err != nil {
				return err
			}
			controlplane, err = rig.Run(ctx, "../controlplane/build.sh")
			return err
		},
		Parallel: 4, // more than the processors, because tests also wait
	})
}

// TestHooks runs each *.bats file.
func TestHooks(t *testing.T) {
	files, err := filepath.Glob("*.bats")
	if err != nil || len(files) < 4 {
		t.Fatalf("there are %q, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".bats"), func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "bats", "--tap", file)
			command.Env = append(os.Environ(), "EKCO_PROGRAM="+program)
			if out, err := command.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}

// buildPackage builds the package into a new directory, with these environment variables. It returns what the build printed.
func buildPackage(t *testing.T, env ...string) (dir, said string) {
	t.Helper()
	dir = t.TempDir()
	out, err := packageBuild(t, dir, env...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir, string(out)
}

// packageBuild returns the command that builds the package.
func packageBuild(t *testing.T, dir string, env ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), "../../deploy/kurl/build.sh", dir)
	command.Env = append(os.Environ(), append([]string{"VERSION=" + version.Get().Version, "SOURCE_DATE_EPOCH=1790000000"}, env...)...)
	return command
}

// addon is the directory of the add-on in a package.
func addon(dir string) string {
	return filepath.Join(dir, "addons/ekco", strings.TrimPrefix(version.Get().Version, "v"))
}

func content(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), mode)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("prepare the test: %w", err))
	}
}
