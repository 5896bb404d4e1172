package loadbalancer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/journal"
)

// formerSuffix ends the names of the copies of the files that [Host.Write] replaces. Both copies are beside the
// configuration: the kubelet would run a manifest's copy as well.
const formerSuffix = ".ekco-former"

// formerValid is how long after a program was killed the copies that it left are put back.
const formerValid = time.Hour

// formerFiles are the copies of configuration and manifest while new ones are tried.
type formerFiles []*durable.Former

// keepFormer restores what an interrupted program left, and copies the files. There are no copies where nothing is to
// be confirmed, or where the manifest is missing: there is nothing to go back to then. Without a configuration, the
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
	beside := filepath.Dir(h.ConfigPath())
	files := formerFiles{
		{Path: h.ConfigPath(), CopyPath: h.ConfigPath() + formerSuffix, Limit: maxConfig, InPlace: true},
		{Path: manifest, CopyPath: filepath.Join(beside, filepath.Base(h.ManifestPath())+formerSuffix), Limit: maxManifest},
	}
	for _, file := range files {
		if _, err := file.Recover(formerValid); err != nil {
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

// confirm restores the files unless the new manifest is confirmed.
func (f formerFiles) confirm(ctx context.Context, h Host, on journal.LoadBalancerOnNode) error {
	if len(f) == 0 {
		return nil
	}
	var failed error
	for _, file := range f {
		failed = errors.Join(failed, file.Changed())
	}
	if failed == nil {
		if failed = h.Confirm(ctx, on); failed == nil {
			return nil
		}
	}
	failed = fmt.Errorf("HAProxy with image %s could not be verified: %w", on.Image, failed)
	var unrestored error
	for _, file := range f {
		_, err := file.Restore()
		unrestored = errors.Join(unrestored, err)
	}
	if unrestored != nil {
		return fmt.Errorf("%w; %w: %w", failed, errNotRestored, unrestored)
	}
	return fmt.Errorf("%w; configuration and manifest are the former ones again", failed)
}

// errNotRestored is wrapped where the copies are still needed.
var errNotRestored = fmt.Errorf("not every former file could be restored, and their copies end in %s in /etc/haproxy", formerSuffix)

// discard removes the copies.
func (f formerFiles) discard() (failed error) {
	for _, file := range f {
		failed = errors.Join(failed, file.Discard())
	}
	return failed
}
