package plane

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Dir is the directory of one control plane.
type Dir string

// Kubeconfig returns the path of the administrator's kubeconfig (group system:masters).
func (d Dir) Kubeconfig() string { return d.path("kubeconfig") }

// Log returns the path of a component's log.
func (d Dir) Log(component string) string { return d.path("logs", component+".log") }

func (d Dir) ports() string             { return d.path("ports") }
func (d Dir) pids() string              { return d.path("pids") }
func (d Dir) lock() string              { return d.path("lock") }
func (d Dir) etcd() string              { return d.path("etcd") }
func (d Dir) kwokConfig() string        { return d.path("kwok.yaml") }
func (d Dir) pki(name string) string    { return d.path("pki", name) }
func (d Dir) config(user string) string { return d.pki(user + ".kubeconfig") }

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// prepare locks the directory, and removes the files of an earlier control plane.
// The lock ends when the returned file is closed. prepare returns an error if the
// directory is in use, or has other files.
func (d Dir) prepare() (*os.File, error) {
	if err := d.refuseForeign(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(string(d), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the control plane's directory: %w", err)
	}
	lock, err := os.OpenFile(d.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the control plane's directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("a control plane is already running in %s: stop it with 'controlplane down --dir %s'", d, d)
	}
	for _, name := range []string{"etcd", "logs", "pki", "kubeconfig", "ports", "pids", "kwok.yaml"} {
		if err := os.RemoveAll(d.path(name)); err != nil {
			_ = lock.Close()
			return nil, fmt.Errorf("cannot remove the files of an earlier control plane: %w", err)
		}
	}
	for _, name := range []string{"logs", "pki"} {
		if err := os.Mkdir(d.path(name), 0o700); err != nil {
			_ = lock.Close()
			return nil, fmt.Errorf("cannot make the control plane's directory: %w", err)
		}
	}
	return lock, nil
}

// refuseForeign returns an error if the directory has files, but not the lock file of a control plane.
func (d Dir) refuseForeign() error {
	entries, err := os.ReadDir(string(d))
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the control plane's directory: %w", err)
	}
	if _, err := os.Stat(d.lock()); err != nil {
		return fmt.Errorf("%s has files that are not of a control plane: use an empty or new directory", d)
	}
	return nil
}
