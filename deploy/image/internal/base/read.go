package base

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/deploy/image/internal/debian"
	"github.com/replicatedhq/ekco/deploy/image/internal/layer"
)

// Base is a minimal Debian.
type Base struct {
	Packages []debian.Package
	Tree     layer.Tree
	// Newest is the time of the newest file in the packages. It does not depend on when the image was built.
	Newest time.Time
}

// Read reads a directory that base.sh made.
func Read(dir string) (Base, error) {
	paragraphs, err := os.ReadFile(filepath.Join(dir, "packages"))
	if err != nil {
		return Base{}, err
	}
	packages, err := debian.Parse(paragraphs)
	if err != nil {
		return Base{}, err
	}
	slices.SortFunc(packages, func(a, b debian.Package) int { return strings.Compare(a.Name, b.Name) })
	owned, err := readOwned(filepath.Join(dir, "files"))
	if err != nil {
		return Base{}, err
	}
	content, err := os.ReadFile(filepath.Join(dir, "base.tar"))
	if err != nil {
		return Base{}, err
	}
	b := Base{Packages: packages, Tree: layer.Tree{}}
	if err := b.unpack(tar.NewReader(bytes.NewReader(content)), owned); err != nil {
		return Base{}, fmt.Errorf("read base.tar of %s: %w", dir, err)
	}
	return b, b.complete()
}

// readOwned returns the paths that belong to a package.
func readOwned(list string) (map[string]bool, error) {
	content, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	owned := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		owned[layer.Clean(strings.TrimSpace(line))] = true
	}
	return owned, nil
}

// unpack adds the files that belong to packages and are kept. An entry that is packed twice, such as a parent
// directory, counts once.
func (b *Base) unpack(archive *tar.Reader, owned map[string]bool) error {
	all := layer.Tree{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := layer.Clean(header.Name)
		if !owned[name] || name == "" {
			continue
		}
		file, err := read(archive, header, all)
		if err != nil {
			return err
		}
		all[name] = file
		if file.Type == tar.TypeReg && header.ModTime.After(b.Newest) {
			b.Newest = header.ModTime.UTC()
		}
		if kept(name, file) {
			b.Tree[name] = file
		}
	}
}

func read(archive io.Reader, header *tar.Header, before layer.Tree) (layer.File, error) {
	for record := range header.PAXRecords {
		if strings.HasPrefix(record, "SCHILY.xattr.") {
			return layer.File{}, fmt.Errorf("%s has an extended attribute, which the image would lose: %s", header.Name, record)
		}
	}
	file := layer.File{Type: header.Typeflag, Mode: header.Mode, UID: header.Uid, GID: header.Gid, Target: header.Linkname}
	switch header.Typeflag {
	case tar.TypeReg:
		var err error
		file.Content, err = io.ReadAll(archive)
		return file, err
	case tar.TypeDir, tar.TypeSymlink:
		return file, nil
	case tar.TypeLink:
		// Copy the file instead of linking it: in a layer sorted by path, the link could precede its target.
		linked, there := before[layer.Clean(header.Linkname)]
		if !there {
			return layer.File{}, fmt.Errorf("%s is a hard link to %s, which does not come before it", header.Name, header.Linkname)
		}
		return linked, nil
	default:
		return layer.File{}, fmt.Errorf("%s is of type %q, which no image needs", header.Name, header.Typeflag)
	}
}
