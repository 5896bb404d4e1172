package main

import v1 "github.com/google/go-containerregistry/pkg/v1"

// repository is the full name of the image that installers use with containerd.
const repository = "docker.io/replicated/ekco"

// Paths in EKCO's own layer that other programs rely on.
const (
	programPath  = "usr/bin/ekco"
	licencesPath = "usr/share/licenses/ekco"
	sbomPath     = "usr/share/doc/ekco/sbom.spdx.json"
)

// config returns the configuration of a container of the image. It must match the Dockerfile.
func config(version, commit string) v1.Config {
	return v1.Config{
		Entrypoint: []string{"/" + programPath},
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"VERSION=" + version,
			"GIT_SHA=" + commit,
		},
		User:       "0",
		WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "EKCO",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.revision": commit,
		},
	}
}
