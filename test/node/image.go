package nodetest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// pauseImage is the image of the container that has the namespaces of a pod.
const pauseImage = "ekco.test/pause:1"

// imageOf returns the name of the image of a package below test/node.
func imageOf(name string) string { return "ekco.test/" + name + ":1" }

// buildImage compiles a package below test/node, and writes an image with this name that has only the program, at the
// path at. source is the folder of EKCO's module.
func buildImage(ctx context.Context, source, name, at, path string) error {
	program, err := compile(ctx, source, name, path)
	if err != nil {
		return err
	}
	return writeImage(path, []string{"/" + at}, []string{imageOf(name)}, entry{name: at, mode: 0o755, content: program})
}

// compile compiles a package below test/node. It needs a temporary file next to path.
func compile(ctx context.Context, source, name, path string) ([]byte, error) {
	program := path + ".program"
	// go run caches linked programs; go build does not.
	build := exec.CommandContext(ctx, "go", "run", "-trimpath", "-exec", "cp", "./test/node/"+name, program)
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build package %s: %w: %s", name, err, output)
	}
	defer os.Remove(program)
	return os.ReadFile(program)
}

// writeImage writes an image with these names and one layer, in the format of "docker save".
func writeImage(path string, entrypoint, names []string, content ...entry) error {
	layer, err := archived(content...)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": entrypoint},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": names, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	image, err := archived(entry{name: "manifest.json", mode: 0o644, content: manifest},
		entry{name: "config.json", mode: 0o644, content: config}, entry{name: "layer.tar", mode: 0o644, content: layer})
	if err != nil {
		return err
	}
	return os.WriteFile(path, image, 0o600)
}

// entry is a file, or a link to another file.
type entry struct {
	name    string
	mode    int64
	content []byte
	link    string
}

func archived(entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content))}
		if e.link != "" {
			header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

// buildEKCO builds EKCO's image for this machine, and returns the path of its archive.
func buildEKCO(ctx context.Context, source, dir, version string) (string, error) {
	build := exec.CommandContext(ctx, filepath.Join(source, "deploy/image/build.sh"), dir)
	build.Env = append(os.Environ(), "VERSION="+version, "ARCHITECTURES="+runtime.GOARCH)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build EKCO's image: %w", err)
	}
	return filepath.Join(dir, "ekco-"+version+"-"+runtime.GOARCH+".tar"), nil
}
