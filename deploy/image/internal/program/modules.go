package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/replicatedhq/ekco/deploy/image/internal/licence"
)

// Module is a Go module that is linked into a program.
type Module struct {
	Path, Version string
	// Sum is its line in go.sum; empty for the standard library.
	Sum string
	// Licences are the licence texts, by path within the module.
	Licences map[string][]byte
}

// Licence returns the SPDX expression of the recognised licences.
func (m Module) Licence() string {
	var ids []string
	for _, text := range m.Licences {
		ids = append(ids, licence.Identify(string(text))...)
	}
	return licence.Expression(ids)
}

// linked returns the module of a line of build information. A module without a licence is an error, since it may not be
// distributed.
func linked(dep *debug.Module, licences map[string]map[string][]byte) (Module, error) {
	texts := licences[dep.Path]
	if dep.Replace != nil {
		dep = dep.Replace
	}
	if len(texts) == 0 {
		return Module{}, fmt.Errorf("module %s %s is linked into EKCO and has no licence file", dep.Path, dep.Version)
	}
	return Module{Path: dep.Path, Version: dep.Version, Sum: dep.Sum, Licences: texts}, nil
}

func (s Source) standard(ctx context.Context, version string) (Module, error) {
	output, err := s.goTool(ctx, "env", "GOROOT")
	if err != nil {
		return Module{}, err
	}
	root := strings.TrimSpace(string(output))
	texts := map[string][]byte{}
	if err := collectLicences(texts, root, root); err != nil {
		return Module{}, err
	}
	if len(texts) == 0 {
		return Module{}, fmt.Errorf("the standard library has no licence file in %s", root)
	}
	return Module{Path: "std", Version: strings.TrimPrefix(version, "go"), Licences: texts}, nil
}

// licences returns the licence texts of every module with a package in EKCO's program: those in the directories of the
// packages and in their parent directories, since code copied into a module has its own licence next to it.
func (s Source) licences(ctx context.Context) (map[string]map[string][]byte, error) {
	output, err := s.goTool(ctx, "list", "-deps", "-json=Dir,Module", "./cmd/ekco")
	if err != nil {
		return nil, err
	}
	found := map[string]map[string][]byte{}
	for packages := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct {
			Dir    string
			Module *struct{ Path, Dir string }
		}
		err := packages.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the answer of go list: %w", err)
		}
		if p.Module == nil { // of the standard library
			continue
		}
		if found[p.Module.Path] == nil {
			found[p.Module.Path] = map[string][]byte{}
		}
		if err := collectLicences(found[p.Module.Path], p.Dir, p.Module.Dir); err != nil {
			return nil, err
		}
	}
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([._-].*)?$`)

// collectLicences reads the licence files of dir and of the directories above it up to root.
func collectLicences(texts map[string][]byte, dir, root string) error {
	for ; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !licenceFile.MatchString(entry.Name()) || path.Ext(entry.Name()) == ".go" {
				continue
			}
			name, err := filepath.Rel(root, filepath.Join(dir, entry.Name()))
			if err != nil {
				return err
			}
			if texts[name], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
		if dir == root || dir == filepath.Dir(dir) {
			return nil
		}
	}
}
