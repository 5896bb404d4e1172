package archive

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Archive is the content of an OCI layout.
type Archive struct {
	name  string
	files map[string][]byte
}

// manifest is the common interface of an image and an index.
type manifest interface {
	MediaType() (types.MediaType, error)
	Digest() (v1.Hash, error)
	RawManifest() ([]byte, error)
}

// OfImage returns an archive of one image with its full name. It also has the files that Docker needs without
// containerd's image store, because that Docker does not read OCI layouts.
func OfImage(name string, image v1.Image) (*Archive, error) {
	a := &Archive{name: name, files: map[string][]byte{}}
	if err := a.image(image); err != nil {
		return nil, err
	}
	if err := a.docker(image); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	return a, a.top(image, config.Platform())
}

// OfIndex returns an archive of an image for several platforms. Docker without containerd's image store can load only the
// image of the first platform.
func OfIndex(name string, index v1.ImageIndex, images []v1.Image) (*Archive, error) {
	a := &Archive{name: name, files: map[string][]byte{}}
	for _, image := range images {
		if err := a.image(image); err != nil {
			return nil, err
		}
	}
	if err := a.blob(index); err != nil {
		return nil, err
	}
	if err := a.docker(images[0]); err != nil {
		return nil, err
	}
	return a, a.top(index, nil)
}

func blobPath(hash v1.Hash) string { return "blobs/" + hash.Algorithm + "/" + hash.Hex }

func (a *Archive) blob(m manifest) error {
	hash, err := m.Digest()
	if err != nil {
		return err
	}
	a.files[blobPath(hash)], err = m.RawManifest()
	return err
}

func (a *Archive) image(image v1.Image) error {
	hash, err := image.ConfigName()
	if err != nil {
		return err
	}
	if a.files[blobPath(hash)], err = image.RawConfigFile(); err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := a.layer(layer); err != nil {
			return err
		}
	}
	return a.blob(image)
}

func (a *Archive) layer(layer v1.Layer) error {
	hash, err := layer.Digest()
	if err != nil {
		return err
	}
	compressed, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = compressed.Close() }()
	a.files[blobPath(hash)], err = io.ReadAll(compressed)
	return err
}

// top writes the entry of the layout. containerd reads the image's name from the first annotation, other tools from the
// second.
func (a *Archive) top(m manifest, platform *v1.Platform) error {
	mediaType, err := m.MediaType()
	if err != nil {
		return err
	}
	raw, err := m.RawManifest()
	if err != nil {
		return err
	}
	hash, err := m.Digest()
	if err != nil {
		return err
	}
	a.files["oci-layout"] = []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return a.json("index.json", v1.IndexManifest{
		SchemaVersion: 2,
		MediaType:     types.OCIImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType: mediaType, Size: int64(len(raw)), Digest: hash, Platform: platform,
			Annotations: map[string]string{
				"io.containerd.image.name":          a.name,
				"org.opencontainers.image.ref.name": a.name[strings.LastIndex(a.name, ":")+1:],
			},
		}},
	})
}

// docker writes the format of "docker save", for "docker load".
func (a *Archive) docker(image v1.Image) error {
	config, err := image.ConfigName()
	if err != nil {
		return err
	}
	entry := struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{Config: blobPath(config), RepoTags: []string{strings.TrimPrefix(a.name, "docker.io/")}}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		hash, err := layer.Digest()
		if err != nil {
			return err
		}
		entry.Layers = append(entry.Layers, blobPath(hash))
	}
	return a.json("manifest.json", []any{entry})
}

func (a *Archive) json(name string, value any) error {
	content, err := json.Marshal(value)
	a.files[name] = content
	return err
}

// WriteFile writes the archive. The same images give the same bytes.
func (a *Archive) WriteFile(file string, at time.Time) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	w := tar.NewWriter(f)
	for _, name := range slices.Sorted(maps.Keys(a.files)) {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(a.files[name])), ModTime: at}
		if err := w.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s to %s: %w", name, file, err)
		}
		if _, err := w.Write(a.files[name]); err != nil {
			return fmt.Errorf("write %s to %s: %w", name, file, err)
		}
	}
	return w.Close()
}
