package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing"
)

// What the tests read of an OCI layout.
type descriptor struct {
	MediaType   string                                     `json:"mediaType"`
	Digest      string                                     `json:"digest"`
	Size        int64                                      `json:"size"`
	Annotations map[string]string                          `json:"annotations"`
	Platform    struct{ OS, Architecture, Variant string } `json:"platform"`
}

type index struct{ Manifests []descriptor }

type manifest struct {
	Config descriptor
	Layers []descriptor
}

type configuration struct {
	Created          string
	OS, Architecture string
	Config           struct {
		User, WorkingDir string
		Env, Entrypoint  []string
		Cmd              []string
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

// layout is the content of an archive, by name.
type layout map[string][]byte

func readLayout(t *testing.T, file string) layout {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	files := layout{}
	each(t, f, func(header *tar.Header, content []byte) { files[header.Name] = content })
	return files
}

// each reads a tar archive.
func each(t *testing.T, r io.Reader, take func(*tar.Header, []byte)) {
	t.Helper()
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		take(header, content)
	}
}

func (l layout) decode(t *testing.T, name string, into any) {
	t.Helper()
	if err := json.Unmarshal(l[name], into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// blob returns what a descriptor describes, which must be what it says.
func (l layout) blob(t *testing.T, d descriptor) []byte {
	t.Helper()
	content, there := l["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
	if digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content)); !there || digest != d.Digest || int64(len(content)) != d.Size {
		t.Fatalf("blob %s of %d bytes: there %t, is %s of %d bytes", d.Digest, d.Size, there, digest, len(content))
	}
	return content
}

// entry is a file in an image.
type entry struct {
	*tar.Header
	content []byte
}

// image is one for one architecture.
type image struct {
	manifest manifest
	config   configuration
	files    map[string]entry
}

// read are the images that were read: tests do not change them.
var read = map[string]image{}

func readImage(t *testing.T, architecture string) image {
	t.Helper()
	if i, there := read[architecture]; there {
		return i
	}
	l := readLayout(t, file("-"+architecture+".tar"))
	var top index
	l.decode(t, "index.json", &top)
	if len(top.Manifests) != 1 {
		t.Fatalf("%d manifests in the archive", len(top.Manifests))
	}
	read[architecture] = l.image(t, top.Manifests[0])
	return read[architecture]
}

func (l layout) image(t *testing.T, d descriptor) image {
	t.Helper()
	i := image{files: map[string]entry{}}
	if err := json.Unmarshal(l.blob(t, d), &i.manifest); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(l.blob(t, i.manifest.Config), &i.config); err != nil {
		t.Fatal(err)
	}
	for n, layer := range i.manifest.Layers {
		i.unpack(t, l.blob(t, layer), i.config.RootFS.DiffIDs[n])
	}
	return i
}

func (i image) unpack(t *testing.T, compressed []byte, diffID string) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	each(t, io.TeeReader(unzipped, sum), func(header *tar.Header, content []byte) {
		i.files[strings.TrimSuffix(header.Name, "/")] = entry{header, content}
	})
	if _, err := io.Copy(sum, unzipped); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("sha256:%x", sum.Sum(nil)); got != diffID {
		t.Errorf("layer is %s, the configuration says %s", got, diffID)
	}
}

// resolve follows symbolic links, also in directories.
func (i image) resolve(t *testing.T, name string) entry {
	t.Helper()
	done, rest := "", strings.Trim(name, "/")
	for range 100 {
		if rest == "" {
			return i.files[done]
		}
		first, after, _ := strings.Cut(rest, "/")
		at := path.Join(done, first)
		found, there := i.files[at]
		switch {
		case !there:
			t.Errorf("%s: %s is not in the image", name, at)
			return entry{Header: &tar.Header{}}
		case found.Typeflag == tar.TypeSymlink:
			target := found.Linkname
			if !path.IsAbs(target) {
				target = path.Join("/", done, target)
			}
			done, rest = "", strings.Trim(path.Join(target, after), "/")
		default:
			done, rest = at, after
		}
	}
	t.Fatalf("%s: too many links", name)
	return entry{}
}

func (i image) elf(t *testing.T, name string) *elf.File {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(i.resolve(t, name).content))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}
