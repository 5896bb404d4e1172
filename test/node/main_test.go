package nodetest

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/version"
	"github.com/replicatedhq/ekco/test/rig"
)

// atOnce is how many tests run at once, unless -parallel says otherwise. They mostly wait for kubelets, so it may
// be more than there are cores.
const atOnce = 3

// buildDir is the directory of the files below. Each is built when it is first needed.
var buildDir string

var (
	// ekcoImage is the archive of EKCO's image. taskImage is that of a program that replaces EKCO in host
	// tasks.
	ekcoImage = sync.OnceValues(func() (string, error) {
		return buildEKCO(context.Background(), "../..", buildDir, version.Get().Version)
	})
	taskImage = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "task.tar")
		return path, buildImage(context.Background(), "../..", "task", "usr/bin/ekco", path)
	})
	// controlPlaneImage contains the control plane's programs, wrongImage other programs with their names.
	controlPlaneImage = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "controlplane.tar")
		return path, writeControlPlaneImage(path)
	})
	wrongImage = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "wrong.tar")
		return path, writeWrongImage(path)
	})
	// haproxyImage is a real HAProxy.
	haproxyImage = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "haproxy.tar")
		return path, buildHAProxy(context.Background(), path, haproxyImages...)
	})
	brokenHAProxyImage = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "broken-haproxy.tar")
		return path, buildHAProxy(context.Background(), path, brokenHAProxy)
	})
	refusingHAProxyImage = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "refusing-haproxy.tar")
		return path, buildHAProxy(context.Background(), path, refusingHAProxy)
	})
	// ekcoProgram is EKCO for hosts.
	ekcoProgram = sync.OnceValues(func() (string, error) {
		path := filepath.Join(buildDir, "ekco")
		return path, rig.BuildEKCO(context.Background(), "../..", path)
	})
)

// built returns the path that a build returns, or ends the test.
func built(t testing.TB, build func() (string, error)) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// becomePrimary has kubeadm make a primary of a node that is ready.
func (n *Node) becomePrimary(tb testing.TB) {
	tb.Helper()
	for _, image := range []func() (string, error){controlPlaneImage, wrongImage} {
		n.Import(tb, built(tb, image))
	}
	n.Init(tb, time.Hour)
}

func TestMain(m *testing.M) {
	rig.Main(m, rig.Options{
		Fetch: []string{
			"./install.sh", "../controlplane/build.sh", "../loadbalancer/install.sh bookworm", "../loadbalancer/install.sh trixie",
			"../../deploy/image/base.sh " + runtime.GOARCH, "go -C ../../deploy/image build -o /dev/null .", rig.EKCOModules,
		},
		Prepare: func(ctx context.Context, dir string) error {
			buildDir = dir
			if err := allowInotify(); err != nil {
				return err
			}
			return Build(ctx, "../..", dir)
		},
		Parallel: atOnce,
	})
}

// allowInotify raises the number of inotify instances that a user may have. Several kubelets and containerds
// need more than the 128 that the kernel allows by default; with less, a kubelet ends at its start. The limit is
// the machine's, and stays.
func allowInotify() error {
	const file, enough = "/proc/sys/fs/inotify/max_user_instances", 1024
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || limit >= enough {
		return err
	}
	return os.WriteFile(file, []byte(strconv.Itoa(enough)), 0)
}
