package kubeconfig

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/replicatedhq/ekco/internal/durable"
)

// largest is the maximum size of a kubeconfig; kubeadm's have some kilobytes.
const largest = 1 << 20

// File is a kubeconfig of a host.
type File struct{ Path string }

// In returns a kubeconfig in directory kubernetes of a host's /etc, and follows a symbolic link. A
// link that points out of /etc is an error: in EKCO's pod it does not point to a file of the host.
func In(etc, name string) (File, error) {
	path := filepath.Join(etc, "kubernetes", name)
	root, err := filepath.EvalSymlinks(etc)
	if err != nil {
		return File{}, fmt.Errorf("find %s: %w", path, err)
	}
	to, err := filepath.EvalSymlinks(path)
	if err != nil {
		return File{}, fmt.Errorf("find %s: %w", path, err)
	}
	if within, err := filepath.Rel(root, to); err != nil || within == ".." || strings.HasPrefix(within, "../") {
		return File{}, fmt.Errorf("%s is a link that points out of %s, to %s; put the file itself there", path, etc, to)
	}
	return File{to}, nil
}

// Check returns an error if the content does not allow [File.SetServer].
func (f File) Check(server string) error {
	content, err := durable.Read(f.Path, largest)
	if err == nil {
		_, _, err = SetServer(content, server)
	}
	if err != nil {
		return fmt.Errorf("set the server in %s: %w", f.Path, err)
	}
	return nil
}

// server returns the server of the first cluster. [File.SetServer] gives all clusters the same server.
func (f File) server() (string, error) {
	content, err := durable.Read(f.Path, largest)
	if err != nil {
		return "", err
	}
	_, entries, err := read(content)
	if err != nil {
		return "", err
	}
	return entries[0].from(), nil
}

// SetServer sets the server of each of its clusters, and returns the former server of each. If anything changes, it
// replaces the file atomically and keeps the mode, owner and attributes.
func (f File) SetServer(server string) ([]Change, error) {
	var changes []Change
	_, err := durable.Edit(f.Path, largest, func(content []byte) (changed []byte, err error) {
		changed, changes, err = SetServer(content, server)
		return changed, err
	})
	if err != nil {
		return nil, fmt.Errorf("set the server in %s: %w", f.Path, err)
	}
	return changes, nil
}
