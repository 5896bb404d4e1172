package archive

import (
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Layer is a compressed tar archive.
type Layer struct {
	Gzip []byte
	// MadeBy is the layer's entry in the history of the image.
	MadeBy string
}

// Image returns an image of layers, the lowest first.
func Image(platform v1.Platform, created time.Time, config v1.Config, layers ...Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range layers {
		content, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(l.Gzip)), nil
		}, tarball.WithMediaType(types.OCILayer))
		if err != nil {
			return nil, fmt.Errorf("make a layer: %w", err)
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer:   content,
			History: v1.History{Created: v1.Time{Time: created}, CreatedBy: l.MadeBy},
		})
		if err != nil {
			return nil, fmt.Errorf("append a layer: %w", err)
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: created}
	file.Config = config
	return mutate.ConfigFile(image, file)
}

// Index returns an index of images for several platforms.
func Index(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: config.Platform()},
		})
	}
	return index, nil
}
