package loadbalancer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/journal"
)

// Host writes the files of the load balancer on a host.
type Host struct {
	// Etc is the path of the host's /etc.
	Etc string
	// TCPProbe selects a manifest in version [TCPFileVersion].
	TCPProbe bool
	// AnyServes returns an error unless an API server answers this host at one of the primaries. It is called before a new
	// configuration is written. With nil, there is no such check.
	AnyServes func(primaries []string) error
	// Works returns an error unless HAProxy runs with this image and version, was started after since, and an API server
	// answers through it. If Works returns no error, [Host.Recover] keeps the changed files. With nil, it never keeps them.
	Works func(on journal.LoadBalancerOnNode, since time.Time) error
	// Confirm returns an error unless HAProxy works with the changed files. After an error, the old files are restored.
	// With nil, a change is never undone.
	Confirm func(context.Context, journal.LoadBalancerOnNode) error
}

// ConfigPath is the path of HAProxy's configuration.
func (h Host) ConfigPath() string { return filepath.Join(h.Etc, "haproxy", "haproxy.cfg") }

// ManifestPath is the path at which the kubelet reads the manifest.
func (h Host) ManifestPath() string {
	return filepath.Join(h.Etc, "kubernetes", "manifests", "haproxy.yaml")
}

// WriteConfig writes HAProxy's configuration for the primaries if the host has another configuration. It returns the
// image and version of the host's manifest. It overwrites the file in place, because the container mounts the file. The
// caller must then reload HAProxy. If [Host.Confirm] fails, WriteConfig restores the old configuration.
func (h Host) WriteConfig(ctx context.Context, primaries []string) (journal.LoadBalancerOnNode, error) {
	return h.try(ctx, func() (journal.LoadBalancerOnNode, error) { return h.config(primaries) })
}

// Write calls [Host.WriteConfig], because HAProxy needs the configuration, and then writes HAProxy's manifest with the
// image if the host has another manifest.
func (h Host) Write(ctx context.Context, primaries []string, image string) (journal.LoadBalancerOnNode, error) {
	if err := CheckImage(image); err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	return h.try(ctx, func() (journal.LoadBalancerOnNode, error) {
		on, err := h.config(primaries)
		if err != nil {
			return on, err
		}
		return h.writeManifest(on, image)
	})
}

// Provide calls [Host.WriteConfig], and writes a manifest if the host has none. It keeps an existing manifest, even with
// another image, because a new manifest would restart HAProxy.
func (h Host) Provide(ctx context.Context, primaries []string, image string) (journal.LoadBalancerOnNode, error) {
	if err := CheckImage(image); err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	return h.try(ctx, func() (journal.LoadBalancerOnNode, error) {
		on, err := h.config(primaries)
		if err != nil || on.Image != "" {
			return on, err
		}
		return h.writeManifest(on, image)
	})
}

// try makes a change. If the change or [Host.Confirm] fails, it restores the old files, because a node without a working
// HAProxy cannot be repaired through the API.
func (h Host) try(ctx context.Context, change func() (journal.LoadBalancerOnNode, error)) (on journal.LoadBalancerOnNode, err error) {
	err = h.locked(func() (err error) {
		on, err = h.tryLocked(ctx, change)
		return err
	})
	return on, err
}

func (h Host) tryLocked(ctx context.Context, change func() (journal.LoadBalancerOnNode, error)) (journal.LoadBalancerOnNode, error) {
	if ctx.Err() != nil {
		return journal.LoadBalancerOnNode{}, context.Cause(ctx)
	}
	former, err := h.keepFormer()
	if err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	on, err := change()
	if len(former) > 0 && (on.Config || on.Manifest) {
		tried := err == nil
		if tried {
			err = former.verify(ctx, h, on)
		}
		if err != nil {
			err = former.restore(err)
		}
		if err != nil && tried && !on.Manifest { // if the manifest changes, the kubelet restarts HAProxy anyway
			if failed := triggerRestart(h.ManifestPath()); failed != nil {
				err = fmt.Errorf("%w; %w; %w", err, failed, errCopiesKept)
			}
		}
	}
	if errors.Is(err, errCopiesKept) {
		return on, err
	}
	return on, errors.Join(err, former.discard())
}

// config writes the configuration.
func (h Host) config(primaries []string) (journal.LoadBalancerOnNode, error) {
	config, err := Config(primaries)
	if err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	present, err := durable.Read(h.ConfigPath(), maxConfig)
	if err == nil {
		config = renamed(config, string(present))
	}
	on := journal.LoadBalancerOnNode{Backend: Backend(config)}
	if on.Config, err = h.writeConfig([]byte(config), primaries); err != nil {
		return on, fmt.Errorf("write %s: %w", h.ConfigPath(), err)
	}
	manifest, err := readManifest(h.ManifestPath())
	on.Image, on.Version = manifest.image, manifest.version
	return on, err
}

func (h Host) writeManifest(on journal.LoadBalancerOnNode, image string) (journal.LoadBalancerOnNode, error) {
	want := manifest{FileVersion, image}
	if h.TCPProbe {
		want.version = TCPFileVersion
	}
	has, written, err := writeManifest(h.ManifestPath(), want)
	if err == nil {
		on.Image, on.Version, on.Manifest = has.image, has.version, written
	}
	return on, err
}

// maxConfig is the maximum size of a configuration in bytes. A thousand primaries need about 100 KB.
const maxConfig = 1 << 20

func (h Host) writeConfig(config []byte, primaries []string) (written bool, err error) {
	if err := h.openDirectory(); err != nil {
		return false, err
	}
	present, err := durable.Read(h.ConfigPath(), maxConfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, durable.ErrTooLarge) {
		return false, err
	}
	if err == nil && bytes.Equal(present, config) && readable(h.ConfigPath(), fileMode) {
		return false, nil
	}
	if h.AnyServes != nil && !bytes.Equal(present, config) {
		if err := h.AnyServes(primaries); err != nil {
			return false, err
		}
	}
	err = durable.Overwrite(h.ConfigPath(), config, fileMode)
	return err == nil, err
}

// openDirectory makes the directory readable for HAProxy, which does not run as root. An installer may have created the
// directory with umask 027.
func (h Host) openDirectory() error {
	directory := filepath.Dir(h.ConfigPath())
	if err := durable.MakeDirectory(directory); err != nil {
		return err
	}
	if readable(directory, 0o755) {
		return nil
	}
	info, err := os.Stat(directory)
	if err != nil {
		return err
	}
	return os.Chmod(directory, info.Mode().Perm()|0o755)
}

// readable reports whether a file has at least the permissions in mode.
func readable(path string, mode fs.FileMode) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&mode == mode
}
