package layer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// File is a file, directory or symbolic link. It has no time.
type File struct {
	// Type is tar.TypeReg, tar.TypeDir or tar.TypeSymlink.
	Type     byte
	Mode     int64
	UID, GID int
	// Target is the target of a symbolic link.
	Target  string
	Content []byte
}

// Tree maps paths, like "usr/bin/ekco", to files.
type Tree map[string]File

// Clean converts a path in a tar archive to the path in a Tree. The root is empty.
func Clean(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

// Write adds a regular file that belongs to root, and its missing parent directories.
func (t Tree) Write(name string, mode int64, content []byte) {
	t.mkdirs(path.Dir(name))
	t[name] = File{Type: tar.TypeReg, Mode: mode, Content: content}
}

// Link adds a symbolic link.
func (t Tree) Link(name, target string) {
	t.mkdirs(path.Dir(name))
	t[name] = File{Type: tar.TypeSymlink, Mode: 0o777, Target: target}
}

func (t Tree) mkdirs(dir string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, there := t[dir]; there {
			return
		}
		t[dir] = File{Type: tar.TypeDir, Mode: 0o755}
	}
}

// Without returns the tree without the directories that the tree below also has: a layer need not repeat those of lower
// layers.
func (t Tree) Without(below Tree) Tree {
	rest := maps.Clone(t)
	maps.DeleteFunc(rest, func(name string, file File) bool {
		return file.Type == tar.TypeDir && below[name].Type == tar.TypeDir
	})
	return rest
}

// Tar writes the files sorted by path, all with the same time and with numeric owners.
func (t Tree) Tar(w io.Writer, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		file := t[name]
		header := &tar.Header{
			Name: name, Typeflag: file.Type, Mode: file.Mode, Uid: file.UID, Gid: file.GID,
			Linkname: file.Target, Size: int64(len(file.Content)), ModTime: at,
		}
		if file.Type == tar.TypeDir {
			header.Name += "/"
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s to the layer: %w", name, err)
		}
		if _, err := archive.Write(file.Content); err != nil {
			return fmt.Errorf("write %s to the layer: %w", name, err)
		}
	}
	return archive.Close()
}

// Gzip returns the tree as a compressed tar archive.
func (t Tree) Gzip(at time.Time) ([]byte, error) {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if err := t.Tar(w, at); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}
