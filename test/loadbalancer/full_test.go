package loadbalancertest_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
)

// TestAFullDiskLeavesTheManifestAsItWas, and nothing beside it.
func TestAFullDiskLeavesTheManifestAsItWas(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=16k"); err != nil {
		t.Fatalf("mount a small disk, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path, filler := filepath.Join(disk, "haproxy.yaml"), filepath.Join(disk, "filler")
	if _, err := loadbalancer.WriteManifest(path, "haproxy:2"); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filler, make([]byte, 16<<10), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if written, err := loadbalancer.WriteManifest(path, "haproxy:3"); written || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("written %v, %v", written, err)
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("it is %q (%v)", after, err)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) != 2 {
		t.Errorf("the disk has %v (%v)", left, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if written, err := loadbalancer.WriteManifest(path, "haproxy:3"); err != nil || !written {
		t.Errorf("with room again: written %v, %v", written, err)
	}
}
