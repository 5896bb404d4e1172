package loadbalancer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/journal"
)

// Host is a host of which the load balancer is a part.
type Host struct {
	// Etc is its /etc.
	Etc string
	// TCPProbe asks for a manifest in version [TCPFileVersion].
	TCPProbe bool
	// AnyServes returns an error unless an API server answers this host at one of these primaries. It is asked before a
	// new configuration is written. Nil asks nobody.
	AnyServes func(primaries []string) error
	// Confirm returns when an API server answers through the HAProxy that the kubelet has started from this manifest.
	// Nil confirms nothing.
	Confirm func(context.Context, journal.LoadBalancerOnNode) error
}

// ConfigPath and ManifestPath are where the files are.
func (h Host) ConfigPath() string { return filepath.Join(h.Etc, "haproxy", "haproxy.cfg") }

// ManifestPath is where the kubelet finds the manifest.
func (h Host) ManifestPath() string {
	return filepath.Join(h.Etc, "kubernetes", "manifests", "haproxy.yaml")
}

// WriteConfig sees to it that a host has HAProxy's configuration for the primaries, and says what
// manifest it has. The configuration is written in its place, since the container has that file
// mounted by itself: HAProxy is to be told to read it again.
func (h Host) WriteConfig(primaries []string) (journal.LoadBalancerOnNode, error) {
	config, err := Config(primaries)
	if err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	on := journal.LoadBalancerOnNode{Backend: Backend(config)}
	if on.Config, err = h.writeConfig([]byte(config), primaries); err != nil {
		return on, fmt.Errorf("write %s: %w", h.ConfigPath(), err)
	}
	present, err := readManifest(h.ManifestPath())
	on.Image, on.Version = present.image, present.version
	return on, err
}

// Write does what [Host.WriteConfig] does, and then sees to it that the host has HAProxy's manifest
// with the image: with a configuration, the kubelet can run it. If it has replaced another manifest, and that is not
// confirmed, or ctx ends first, it restores both files and fails: a node whose HAProxy does not work cannot be repaired
// through the API.
func (h Host) Write(ctx context.Context, primaries []string, image string) (journal.LoadBalancerOnNode, error) {
	if err := CheckImage(image); err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	former, err := h.keepFormer()
	if err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	on, err := h.WriteConfig(primaries)
	if err == nil {
		on, err = h.writeManifest(on, image)
	}
	if err == nil && on.Manifest {
		err = former.confirm(ctx, h, on)
	}
	if errors.Is(err, errNotRestored) {
		return on, err
	}
	return on, errors.Join(err, former.discard())
}

// Provide does what [Host.Write] does where the host has no manifest. One that there is stays as it
// is, whatever image it has: HAProxy would be restarted.
func (h Host) Provide(primaries []string, image string) (journal.LoadBalancerOnNode, error) {
	if err := CheckImage(image); err != nil {
		return journal.LoadBalancerOnNode{}, err
	}
	on, err := h.WriteConfig(primaries)
	if err != nil || on.Image != "" {
		return on, err
	}
	return h.writeManifest(on, image)
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

// maxConfig is how large a configuration is read: one for a thousand primaries has some 100 KB.
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
	if err := durable.Overwrite(h.ConfigPath(), config, fileMode); err != nil {
		return false, err
	}
	// Who writes it by hand holds no lock.
	present, err = durable.Read(h.ConfigPath(), maxConfig)
	if err == nil && !bytes.Equal(present, config) {
		err = errors.New("it has other content right after it was written; look who else writes it")
	}
	return err == nil, err
}

// openDirectory lets HAProxy, which is not root, into a directory that an installer made where
// the umask is 027.
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

// readable reports whether a file has at least these rights.
func readable(path string, mode fs.FileMode) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&mode == mode
}
