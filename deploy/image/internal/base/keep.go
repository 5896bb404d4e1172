package base

import (
	"archive/tar"
	"path"
	"strings"

	"github.com/replicatedhq/ekco/deploy/image/internal/layer"
)

// documentation are directories that a container does not need. They do not contain licences.
var documentation = []string{
	"usr/share/bug", "usr/share/dict", "usr/share/doc-base", "usr/share/info", "usr/share/lintian",
	"usr/share/locale", "usr/share/man", "usr/share/menu",
}

// kept reports whether a file of a package is part of the image.
func kept(name string, file layer.File) bool {
	for _, dir := range documentation {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return false
		}
	}
	switch {
	case strings.HasPrefix(name, "dev/"):
		return false // the container runtime makes them
	case strings.HasPrefix(name, "usr/share/doc/"):
		return licence(name, file)
	}
	return true
}

// licence reports whether the file is a package's copyright file, its directory, or a link to the directory of another
// package from the same source.
func licence(name string, file layer.File) bool {
	inDoc := path.Dir(name) == "usr/share/doc"
	return path.Base(name) == "copyright" || inDoc && file.Type != tar.TypeReg
}
