package main

import (
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/replicatedhq/ekco/deploy/image/internal/archive"
)

// write writes an archive and an SBOM for each architecture, one archive of all architectures, and the digests.
func (o options) write(images []built) error {
	name := repository + ":" + o.version
	var all []v1.Image
	var digests string
	for _, b := range images {
		all = append(all, b.image)
		one, err := archive.OfImage(name, b.image)
		if err != nil {
			return err
		}
		if err := one.WriteFile(o.file("-"+b.architecture+".tar"), o.created); err != nil {
			return err
		}
		if err := os.WriteFile(o.file("-"+b.architecture+".spdx.json"), b.sbom, 0o644); err != nil {
			return err
		}
		digest, err := b.image.Digest()
		if err != nil {
			return err
		}
		digests += fmt.Sprintf("%s linux/%s\n", digest, b.architecture)
	}
	index, err := archive.Index(all)
	if err != nil {
		return err
	}
	both, err := archive.OfIndex(name, index, all)
	if err != nil {
		return err
	}
	if err := both.WriteFile(o.file(".tar"), o.created); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	digests += fmt.Sprintf("%s index\n", digest)
	fmt.Print(digests)
	return os.WriteFile(o.file(".digests"), []byte(digests), 0o644)
}

// writeTrees writes rootfs-ARCHITECTURE.tar for each image.
func (o options) writeTrees(images []built) error {
	for _, b := range images {
		f, err := os.Create(filepath.Join(o.out, "rootfs-"+b.architecture+".tar"))
		if err != nil {
			return err
		}
		err = b.files.Tar(f, o.created)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (o options) file(rest string) string {
	return filepath.Join(o.out, "ekco-"+o.version+rest)
}
