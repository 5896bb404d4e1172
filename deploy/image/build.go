package main

import (
	"context"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/replicatedhq/ekco/deploy/image/internal/archive"
	"github.com/replicatedhq/ekco/deploy/image/internal/base"
	"github.com/replicatedhq/ekco/deploy/image/internal/layer"
	"github.com/replicatedhq/ekco/deploy/image/internal/program"
	"github.com/replicatedhq/ekco/deploy/image/internal/sbom"
)

// built is the image for one architecture.
type built struct {
	architecture string
	image        v1.Image
	sbom         []byte
	// files are all files of the image.
	files layer.Tree
}

// build creates the image from a directory that base.sh made, and EKCO.
func (o options) build(ctx context.Context, architecture, baseDir string) (built, error) {
	lower, err := base.Read(baseDir)
	if err != nil {
		return built{}, err
	}
	ekco, err := program.Build(ctx, program.Source{Dir: o.source, Architecture: architecture, Version: o.version, Commit: o.commit})
	if err != nil {
		return built{}, err
	}
	list, err := sbom.Write(sbom.Contents{
		Image: repository, Version: o.version, Architecture: architecture, Commit: o.commit, Created: o.created,
		Program: ekco, Packages: lower.Packages, Licences: licencesPath,
	})
	if err != nil {
		return built{}, err
	}
	upper := ekcoLayer(ekco, list)
	b := built{architecture: architecture, sbom: list, files: merge(lower.Tree, upper)}
	b.image, err = o.assemble(architecture, lower, upper.Without(lower.Tree))
	return b, err
}

// ekcoLayer returns the layer above Debian's packages.
func ekcoLayer(ekco program.Program, list []byte) layer.Tree {
	tree := layer.Tree{}
	tree.Write(programPath, 0o755, ekco.Content)
	tree.Write(sbomPath, 0o644, list)
	for _, module := range append(ekco.Modules, ekco.Standard) {
		for name, text := range module.Licences {
			tree.Write(licencesPath+"/"+module.Path+"/"+name, 0o644, text)
		}
	}
	return tree
}

func merge(lower, upper layer.Tree) layer.Tree {
	merged := layer.Tree{}
	for name, file := range lower {
		merged[name] = file
	}
	for name, file := range upper.Without(lower) {
		merged[name] = file
	}
	return merged
}

// assemble makes an image of two layers. It gives the lower layer the time of its newest package: then the next
// versions of EKCO have the same layer, and a node that has it need not pull it again.
func (o options) assemble(architecture string, lower base.Base, upper layer.Tree) (v1.Image, error) {
	debian, err := lower.Tree.Gzip(lower.Newest)
	if err != nil {
		return nil, err
	}
	ekco, err := upper.Gzip(o.created)
	if err != nil {
		return nil, err
	}
	image, err := archive.Image(v1.Platform{OS: "linux", Architecture: architecture, Variant: variants[architecture]},
		o.created, config(o.version, o.commit),
		archive.Layer{Gzip: debian, MadeBy: "Debian packages"},
		archive.Layer{Gzip: ekco, MadeBy: "EKCO " + o.version})
	if err != nil {
		return nil, fmt.Errorf("make the image for %s: %w", architecture, err)
	}
	return image, nil
}

// variants are the OCI variants of architectures that have one.
var variants = map[string]string{"arm64": "v8"}

// epoch converts SOURCE_DATE_EPOCH.
func epoch(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
