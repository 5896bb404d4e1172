package program

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const main = "github.com/replicatedhq/ekco"

// Source describes the build.
type Source struct {
	// Dir is the directory of EKCO's module.
	Dir          string
	Architecture string
	// Version and Commit are linked into the program.
	Version, Commit string
}

// Program is EKCO as a static executable.
type Program struct {
	Content []byte
	// Go is the version of Go's compiler and standard library, such as "go1.26.8".
	Go string
	// Modules are the modules linked into it, sorted by path, without EKCO and the standard library.
	Modules []Module
	// Standard is the standard library.
	Standard Module
}

// Build compiles the program.
func Build(ctx context.Context, source Source) (Program, error) {
	dir, err := os.MkdirTemp("", "ekco-image-")
	if err != nil {
		return Program{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "ekco")
	stamps := fmt.Sprintf("-s -w -X %s/internal/version.version=%s -X %s/internal/version.gitSHA=%s", main, source.Version, main, source.Commit)
	// -buildvcs=false: a commit builds the same program without git. The other flags are those of the
	// Makefile, so that the build uses packages in Go's cache.
	if _, err := source.goTool(ctx, "build", "-trimpath", "-gcflags=all=-dwarf=false", "-buildvcs=false", "-ldflags", stamps, "-o", file, "./cmd/ekco"); err != nil {
		return Program{}, err
	}
	return source.examine(ctx, file)
}

func (s Source) examine(ctx context.Context, file string) (Program, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Program{}, err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return Program{}, fmt.Errorf("read the build information of EKCO for %s: %w", s.Architecture, err)
	}
	licences, err := s.licences(ctx)
	if err != nil {
		return Program{}, err
	}
	p := Program{Content: content, Go: info.GoVersion}
	for _, dep := range info.Deps {
		module, err := linked(dep, licences)
		if err != nil {
			return Program{}, err
		}
		p.Modules = append(p.Modules, module)
	}
	p.Standard, err = s.standard(ctx, info.GoVersion)
	return p, err
}

// goTool runs the go command for the architecture and returns its output. Build settings in the environment have no
// effect.
func (s Source) goTool(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = s.Dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+s.Architecture,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s for %s: %w: %s", args[0], s.Architecture, err, strings.TrimSpace(stderr.String()))
	}
	return output, nil
}
