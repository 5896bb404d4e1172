package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

// formerFiles are the copies of the old configuration and manifest during a change. Both copies are in the directory of
// the configuration, because the kubelet would run a copy in its manifest directory.
type formerFiles []*durable.FormerFile

// formers returns the configuration and the manifest of a host, in this order. It returns nil if there is no manifest,
// because then there is nothing to restore.
func (h Host) formers() (formerFiles, error) {
	manifest, err := filepath.EvalSymlinks(h.ManifestPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return formerFiles{
		{Path: h.ConfigPath(), CopyPath: h.ConfigPath() + durable.FormerSuffix, Limit: maxConfig, InPlace: true},
		{Path: manifest, CopyPath: filepath.Join(filepath.Dir(h.ConfigPath()), filepath.Base(h.ManifestPath())+durable.FormerSuffix), Limit: maxManifest},
	}, err
}

// Recover restores the old files after an interrupted change, and makes the kubelet restart HAProxy with them. If
// HAProxy works with the changed files, Recover keeps the changed files, because the former primaries may be gone.
func (h Host) Recover() error { return h.locked(h.recover) }

// locked calls do while no other task changes the files of this host. It uses a separate directory as the lock, because
// the files may be missing, and because package durable locks the directory of the files.
func (h Host) locked(do func() error) error {
	path := filepath.Join(filepath.Dir(h.ConfigPath()), ".ekco-lock")
	if err := durable.MakeDirectory(path); err != nil {
		return err
	}
	lock, err := durable.Lock(context.Background(), path) // Lock has a timeout of its own
	if err != nil {
		return err
	}
	defer lock.Close()
	return do()
}

func (h Host) recover() error {
	files, err := h.formers()
	if err != nil || len(files) == 0 {
		return err
	}
	if works, err := h.works(files); err != nil || works {
		return err
	}
	config, err := files[0].Recover()
	if err != nil {
		return err
	}
	manifest, err := files[1].Recover()
	if err != nil || manifest || !config { // if the manifest changes, the kubelet restarts HAProxy anyway
		return err
	}
	return triggerRestart(h.ManifestPath())
}

// works reports whether HAProxy works with the files of an interrupted change. If so, it removes the copies of the old
// files.
func (h Host) works(files formerFiles) (bool, error) {
	var since time.Time
	for _, file := range files {
		changed, err := file.Interrupted()
		if err != nil {
			return false, err
		}
		if changed.After(since) {
			since = changed
		}
	}
	if since.IsZero() || h.Works == nil {
		return false, nil
	}
	has, err := readManifest(h.ManifestPath())
	if err != nil || h.Works(journal.LoadBalancerOnNode{Image: has.image, Version: has.version}, since) != nil {
		return false, nil //nolint:nilerr // then the former files are restored
	}
	return true, files.discard()
}

// keepFormer copies the files for [Host.Recover]. It does nothing if [Host.Confirm] is nil. If only the configuration
// was missing, a restore keeps the new configuration and the old manifest.
func (h Host) keepFormer() (formerFiles, error) {
	if h.Confirm == nil {
		return nil, nil
	}
	files, err := h.formers()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := file.Keep(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, files.discard())
		}
	}
	return files, nil
}

// verify returns an error unless [Host.Confirm] confirms the change.
func (f formerFiles) verify(ctx context.Context, h Host, on journal.LoadBalancerOnNode) (failed error) {
	for _, file := range f {
		failed = errors.Join(failed, file.Changed())
	}
	if failed == nil {
		failed = h.Confirm(ctx, on)
	}
	if failed == nil {
		return nil
	}
	return &hosttask.WorseError{Err: fmt.Errorf("HAProxy (image %s) was not confirmed to work with the new files: %w", on.Image, failed)}
}

// restore restores the files after a change that failed.
func (f formerFiles) restore(failed error) error {
	var unrestored error
	for _, file := range f {
		_, err := file.Restore()
		unrestored = errors.Join(unrestored, err)
	}
	if unrestored != nil {
		return fmt.Errorf("%w; not every file could be restored: %w; %w", failed, unrestored, errCopiesKept)
	}
	return fmt.Errorf("%w; the former configuration and manifest were restored", failed)
}

// errCopiesKept means that the copies are still needed.
var errCopiesKept = fmt.Errorf("copies of the former files end in %s in /etc/haproxy", durable.FormerSuffix)

// discard removes the copies.
func (f formerFiles) discard() (failed error) {
	for _, file := range f {
		failed = errors.Join(failed, file.Discard())
	}
	return failed
}
