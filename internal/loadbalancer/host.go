package loadbalancer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/replicatedhq/ekco/internal/durable"
)

// Host is a host of which the load balancer is a part.
type Host struct {
	// Etc is its /etc.
	Etc string
}

// Written is what became of the files of a host.
type Written struct {
	// Backend is the name of the backend in the configuration, as [Backend] has it.
	Backend string `json:"backend"`
	// Config and Manifest are set if the file was not as it shall be, and was written.
	Config   bool `json:"config,omitempty"`
	Manifest bool `json:"manifest,omitempty"`
}

// ConfigPath and ManifestPath are where the files are.
func (h Host) ConfigPath() string { return filepath.Join(h.Etc, "haproxy", "haproxy.cfg") }

// ManifestPath is where the kubelet finds the manifest.
func (h Host) ManifestPath() string {
	return filepath.Join(h.Etc, "kubernetes", "manifests", "haproxy.yaml")
}

// Write sees to it that a host has HAProxy's configuration for the primaries, and then that it has
// its manifest with the image. The configuration is written in its place, since the container has
// that file mounted by itself: HAProxy is to be told to read it again.
func (h Host) Write(primaries []string, image string) (Written, error) {
	config, err := Config(primaries)
	if err == nil {
		err = CheckImage(image)
	}
	if err != nil {
		return Written{}, err
	}
	w := Written{Backend: Backend(config)}
	if w.Config, err = h.writeConfig([]byte(config)); err != nil {
		return w, fmt.Errorf("write %s: %w", h.ConfigPath(), err)
	}
	w.Manifest, err = WriteManifest(h.ManifestPath(), image)
	return w, err
}

// maxConfig is how large a configuration is read: one for a thousand primaries has some 100 KB.
const maxConfig = 1 << 20

func (h Host) writeConfig(config []byte) (written bool, err error) {
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
