package layer

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"
)

// written lists what an archive of the tree has, with all that a container sees of it.
func written(t *testing.T, tree Tree, at time.Time) (all []string) {
	t.Helper()
	var archive bytes.Buffer
	if err := tree.Tar(&archive, at); err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(&archive)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil || !header.ModTime.Equal(at) {
			t.Errorf("%s is of %s, %v", header.Name, header.ModTime, err)
		}
		all = append(all, fmt.Sprintf("%c %o %d:%d %s %s%s", header.Typeflag, header.Mode, header.Uid, header.Gid, header.Name, header.Linkname, content))
	}
}

func TestAnArchiveHasEachFileAsItIsAndAllOfOneTime(t *testing.T) {
	tree := Tree{}
	tree.Write("usr/bin/ekco", 0o755, []byte("ekco"))
	tree.Link("var/run", "/run")
	tree["etc/shadow"] = File{Type: tar.TypeReg, Mode: 0o640, GID: 42, Content: []byte("x")}
	want := []string{
		"0 640 0:42 etc/shadow x", "5 755 0:0 usr/ ", "5 755 0:0 usr/bin/ ", "0 755 0:0 usr/bin/ekco ekco", "5 755 0:0 var/ ", "2 777 0:0 var/run /run",
	}
	if got := written(t, tree, time.Unix(1e9, 0)); !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
}

// TestALayerRepeatsNoDirectoryOfTheOneBelow: but what it has in another way.
func TestALayerRepeatsNoDirectoryOfTheOneBelow(t *testing.T) {
	below, upper := Tree{}, Tree{}
	below.Write("usr/bin/bash", 0o755, nil)
	upper.Write("usr/bin/ekco", 0o755, nil)
	upper.Write("usr/bin/bash", 0o755, []byte("another"))
	upper.Write("opt", 0o644, nil)
	below.Write("opt/x", 0o644, nil)
	want := []string{"0 644 0:0 opt ", "0 755 0:0 usr/bin/bash another", "0 755 0:0 usr/bin/ekco "}
	if got := written(t, upper.Without(below), time.Unix(1e9, 0)); !slices.Equal(got, want) {
		t.Errorf("it has %q, want %q", got, want)
	}
}
