package base

import (
	"fmt"

	"github.com/replicatedhq/ekco/deploy/image/internal/debian"
)

// copies are the copies that package scripts make. No script runs here.
var copies = map[string]string{
	"etc/passwd": "usr/share/base-passwd/passwd.master",
	"etc/group":  "usr/share/base-passwd/group.master",
}

// links are the links that package scripts make.
var links = map[string]string{
	"usr/bin/awk": "mawk",
	"var/lock":    "/run/lock",
	"var/run":     "/run",
}

// complete replaces the effects of package scripts that the image needs.
func (b *Base) complete() error {
	for name, from := range copies {
		file, there := b.Tree[from]
		if !there {
			return fmt.Errorf("make %s: no package has %s; has Debian moved it?", name, from)
		}
		b.Tree.Write(name, 0o644, file.Content)
	}
	for name, target := range links {
		b.Tree.Link(name, target)
	}
	b.Tree.Write("var/lib/dpkg/status", 0o644, debian.Status(b.Packages))
	return nil
}
