package main

import v1 "github.com/google/go-containerregistry/pkg/v1"

// repository is the image's full name, by which installers ask containerd for it.
const repository = "docker.io/replicated/ekco"

// Where EKCO's own layer has what it is asked for by name.
const (
	programPath  = "usr/bin/ekco"
	licencesPath = "usr/share/licenses/ekco"
	sbomPath     = "usr/share/doc/ekco/sbom.spdx.json"
)

// config is how a container of the image starts. The Dockerfile says the same.
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
