package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

// formerFiles are the copies of the configuration and the manifest while a change is tried. Both are in the
// directory of the configuration: in its manifest directory, the kubelet would run the copy as well.
type formerFiles []*durable.Former

// keepFormer restores the files after an interrupted change, and copies them. Without [Host.Confirm] it does nothing.
// If the manifest is missing, it keeps no copies, since there is nothing to restore. If only the configuration is, the
// former manifest is restored with the new one.
func (h Host) keepFormer() (formerFiles, error) {
	if h.Confirm == nil {
		return nil, nil
	}
	manifest, err := filepath.EvalSymlinks(h.ManifestPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files := formerFiles{
		{Path: h.ConfigPath(), CopyPath: h.ConfigPath() + durable.FormerSuffix, Limit: maxConfig, InPlace: true},
		{Path: manifest, CopyPath: filepath.Join(filepath.Dir(h.ConfigPath()), filepath.Base(h.ManifestPath())+durable.FormerSuffix), Limit: maxManifest},
	}
	for _, file := range files {
		if err := file.Recover(); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		if err := file.Keep(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, files.discard())
		}
	}
	return files, nil
}

// confirm restores the files after a change that failed, or that [Host.Confirm] does not confirm.
func (f formerFiles) confirm(ctx context.Context, h Host, on journal.LoadBalancerOnNode, failed error) error {
	if len(f) == 0 {
		return failed
	}
	tried := failed == nil
	if tried {
		for _, file := range f {
			failed = errors.Join(failed, file.Changed())
		}
		if failed == nil {
			failed = h.Confirm(ctx, on)
		}
		if failed == nil {
			return nil
		}
		failed = &hosttask.WorseError{Err: fmt.Errorf("HAProxy with image %s was not confirmed to work: %w", on.Image, failed)}
	}
	var unrestored error
	for _, file := range f {
		_, err := file.Restore()
		unrestored = errors.Join(unrestored, err)
	}
	if unrestored != nil {
		return fmt.Errorf("%w; %w: %w", failed, errNotRestored, unrestored)
	}
	if tried && !on.Manifest {
		unrestored = restart(h.ManifestPath())
	}
	return errors.Join(fmt.Errorf("%w; its former configuration and manifest were restored", failed), unrestored)
}

// errNotRestored says that the copies are still needed.
var errNotRestored = fmt.Errorf("not every file could be restored; copies of the former files end in %s in /etc/haproxy", durable.FormerSuffix)

// discard removes the copies.
func (f formerFiles) discard() (failed error) {
	for _, file := range f {
		failed = errors.Join(failed, file.Discard())
	}
	return failed
}
