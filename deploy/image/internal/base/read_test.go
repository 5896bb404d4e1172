package base

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var packed = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// packaged is what packages contain.
func packaged() []tar.Header {
	file := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: 4, ModTime: packed}
	}
	dir := func(name string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: packed}
	}
	return []tar.Header{
		dir("./"), dir("./usr/"), dir("./usr/share/"), dir("./usr/share/base-passwd/"),
		file("./usr/share/base-passwd/passwd.master"), file("./usr/share/base-passwd/group.master"),
		dir("./usr/share/man/"), file("./usr/share/man/bash.1"),
		dir("./usr/share/doc/"), dir("./usr/share/doc/bash/"), file("./usr/share/doc/bash/copyright"), file("./usr/share/doc/bash/README"),
		{Name: "./usr/share/doc/sh", Typeflag: tar.TypeSymlink, Linkname: "bash", Mode: 0o777, ModTime: packed},
		dir("./usr/bin/"), file("./usr/bin/bash"),
		{Name: "./usr/bin/again", Typeflag: tar.TypeLink, Linkname: "./usr/bin/bash", Mode: 0o644, ModTime: packed},
	}
}

// write writes a directory as base.sh does.
func write(t *testing.T, owned, others []tar.Header) string {
	t.Helper()
	dir := t.TempDir()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	var files string
	for i, header := range slices.Concat(owned, others) {
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("text")[:header.Size]); err != nil {
			t.Fatal(err)
		}
		if i < len(owned) {
			files += header.Name + "\n"
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	packages := "Package: bash\nVersion: 1\nArchitecture: amd64\nSHA256: " + strings.Repeat("0", 64) + "\n\n"
	for name, content := range map[string]string{"base.tar": archive.String(), "files": files, "packages": packages} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func layerOf(t *testing.T, dir string) (Base, []byte) {
	t.Helper()
	b, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	layer, err := b.Tree.Gzip(b.Newest)
	if err != nil {
		t.Fatal(err)
	}
	return b, layer
}

func TestTheLayerDependsOnlyOnThePackages(t *testing.T) {
	first, layer := layerOf(t, write(t, packaged(), nil))
	// Another machine, another day, another order: directories have the time of the
	// unpacking, and mmdebstrap adds files.
	later := packed.Add(1000 * time.Hour)
	other := packaged()
	for i := range other {
		if other[i].Typeflag == tar.TypeDir {
			other[i].ModTime = later
		}
		other[i].Uname, other[i].Gname = "somebody", "some"
	}
	slices.Reverse(other[:len(other)-1]) // the hard link stays after its file
	second, same := layerOf(t, write(t, other, []tar.Header{
		{Name: "./etc/resolv.conf", Typeflag: tar.TypeReg, Mode: 0o644, Size: 4, ModTime: later},
		{Name: "./dev/null", Typeflag: tar.TypeChar, Mode: 0o666, ModTime: later},
	}))
	if !first.Newest.Equal(packed) || !second.Newest.Equal(packed) {
		t.Errorf("the newest package is of %s and %s, want %s", first.Newest, second.Newest, packed)
	}
	if !bytes.Equal(layer, same) {
		t.Error("the layers differ")
	}
}

func TestDocumentationIsLeftOutButLicences(t *testing.T) {
	b, _ := layerOf(t, write(t, packaged(), nil))
	for name, want := range map[string]bool{
		"usr/share/man/bash.1": false, "usr/share/man": false, "usr/share/doc/bash/README": false,
		"usr/share/doc/bash/copyright": true, "usr/share/doc/bash": true, "usr/share/doc/sh": true, "usr/bin/bash": true,
		"etc/passwd": true, "etc/group": true, "var/lib/dpkg/status": true, "var/lib/dpkg": true,
	} {
		if _, there := b.Tree[name]; there != want {
			t.Errorf("%s: in the layer %t, want %t", name, there, want)
		}
	}
	if again := b.Tree["usr/bin/again"]; again.Type != tar.TypeReg || string(again.Content) != "text" {
		t.Errorf("the hard link became %+v, want a copy", again)
	}
}

func TestWhatAnImageCannotKeepIsRefused(t *testing.T) {
	for what, header := range map[string]tar.Header{
		"capabilities": {Name: "./usr/bin/ping", Typeflag: tar.TypeReg, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"}},
		"a device":     {Name: "./lib/null", Typeflag: tar.TypeChar},
		"a link ahead": {Name: "./usr/bin/a", Typeflag: tar.TypeLink, Linkname: "./usr/bin/z"},
	} {
		if _, err := Read(write(t, append(packaged(), header), nil)); err == nil {
			t.Errorf("a package with %s is taken", what)
		}
	}
	if _, err := Read(write(t, packaged()[:4], nil)); err == nil || !strings.Contains(err.Error(), "etc/") {
		t.Errorf("without the master copy of passwd: %v", err)
	}
}
