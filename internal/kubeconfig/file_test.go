package kubeconfig

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// etc is a host's, with kubelet.conf.
func etc(t *testing.T, content string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "kubernetes", "kubelet.conf")
	if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600), os.Chmod(path, 0o640)); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

func TestAFileIsReplacedWithModeAndOwner(t *testing.T) {
	dir, path := etc(t, ofKubelet)
	if os.Geteuid() == 0 {
		if err := os.Chown(path, 3, 4); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := In(dir, "kubelet.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Check(balancer); err != nil {
		t.Error(err)
	}
	var before fs.FileInfo
	for _, want := range []string{"https://10.128.0.3:6443", balancer} {
		changes, err := file.SetServer(balancer)
		if diff := cmp.Diff([]Change{{"kubernetes", want}}, changes); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
		content, err := os.ReadFile(path)
		if err != nil || string(content) != strings.Replace(ofKubelet, "https://10.128.0.3:6443", balancer, 1) {
			t.Errorf("%v: %s", err, content)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o640 || info.Sys().(*syscall.Stat_t).Uid != old.Sys().(*syscall.Stat_t).Uid || info.Sys().(*syscall.Stat_t).Gid != old.Sys().(*syscall.Stat_t).Gid {
			t.Errorf("%v: %v", err, info)
		}
		if os.SameFile(old, info) || before != nil && !os.SameFile(before, info) {
			t.Error("it is not the one file that was put there")
		}
		before = info
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v: %v", err, entries)
	}
}

func TestAFileThatIsNoKubeconfigIsNamedAndLeftAlone(t *testing.T) {
	dir, path := etc(t, "kind: Pod\n")
	file, err := In(dir, "kubelet.conf")
	if err != nil {
		t.Fatal(err)
	}
	_, setting := file.SetServer(balancer)
	for _, err := range []error{file.Check(balancer), setting} {
		if err == nil || !strings.Contains(err.Error(), "set the server in "+path+": it is not a kubeconfig") {
			t.Error(err)
		}
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "kind: Pod\n" {
		t.Errorf("%v: %s", err, content)
	}
	if _, err := In(dir, "admin.conf"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "admin.conf") {
		t.Error(err)
	}
}

func TestALinkStaysOneAndLeadsNowhereElse(t *testing.T) {
	dir, path := etc(t, ofKubelet)
	_, elsewhere := etc(t, ofKubelet)
	for name, to := range map[string]string{"within.conf": "kubelet.conf", "out.conf": elsewhere} {
		if err := os.Symlink(to, filepath.Join(filepath.Dir(path), name)); err != nil {
			t.Fatal(err)
		}
	}
	file, err := In(dir, "within.conf")
	if err != nil || file.Path != path {
		t.Errorf("%v, %v", file, err)
	}
	if _, err := In(dir, "out.conf"); err == nil || !strings.Contains(err.Error(), "a link that points out of "+dir+", to "+elsewhere) {
		t.Error(err)
	}
}
