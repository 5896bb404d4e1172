package image

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

const (
	sbomPath     = "usr/share/doc/ekco/sbom.spdx.json"
	licencesPath = "usr/share/licenses/ekco/"
)

// listed is what the SBOM lists, as "name version", by the kind of package URL.
func listed(t *testing.T, content []byte) map[string][]string {
	t.Helper()
	var document struct {
		SPDXVersion string
		Packages    []struct {
			Name, VersionInfo string
			ExternalRefs      []struct{ ReferenceLocator string }
		}
	}
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	if document.SPDXVersion != "SPDX-2.3" {
		t.Errorf("the SBOM is %q", document.SPDXVersion)
	}
	kinds := map[string][]string{}
	for _, p := range document.Packages {
		var kind string
		if len(p.ExternalRefs) > 0 {
			kind, _, _ = strings.Cut(p.ExternalRefs[0].ReferenceLocator, "/")
		}
		kinds[kind] = append(kinds[kind], p.Name+" "+p.VersionInfo)
	}
	return kinds
}

// installed is what dpkg's database in the image lists.
func installed(t *testing.T, i image) []string {
	t.Helper()
	var packages []string
	var name string
	for line := range strings.Lines(string(i.resolve(t, "/var/lib/dpkg/status").content)) {
		if value, ok := strings.CutPrefix(line, "Package: "); ok {
			name = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(line, "Version: "); ok {
			packages = append(packages, name+" "+strings.TrimSpace(value))
		}
	}
	return packages
}

// linked is what the program says it is made of, itself and Go included.
func linked(t *testing.T, i image) (modules []string) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(i.resolve(t, "/usr/bin/ekco").content))
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range info.Deps {
		modules = append(modules, dep.Path+" "+dep.Version)
	}
	_, version, _ := strings.Cut(name, ":")
	return append(modules, "std "+strings.TrimPrefix(info.GoVersion, "go"), "github.com/replicatedhq/ekco "+version)
}

func TestTheSBOMListsEveryPackageAndModule(t *testing.T) {
	forEach(t, func(t *testing.T, architecture string, i image) {
		content, err := os.ReadFile(file("-" + architecture + ".spdx.json"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(content, i.resolve(t, "/"+sbomPath).content) {
			t.Error("the SBOM in the image is another than the one beside it")
		}
		got := listed(t, content)
		same(t, "Debian packages", got["pkg:deb"], installed(t, i))
		same(t, "Go modules", got["pkg:golang"], linked(t, i))
		if len(got["pkg:deb"]) < 20 || len(got["pkg:golang"]) < 20 {
			t.Errorf("only %d packages and %d modules", len(got["pkg:deb"]), len(got["pkg:golang"]))
		}
	})
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s in the SBOM:\n%s\nin the image:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEveryLicenceIsInTheImage(t *testing.T) {
	forEach(t, func(t *testing.T, _ string, i image) {
		for _, p := range installed(t, i) {
			name, _, _ := strings.Cut(p, " ")
			text := string(i.resolve(t, "/usr/share/doc/"+name+"/copyright").content)
			if len(text) < 100 {
				t.Errorf("package %s has the copyright file %q", name, text)
			}
			for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n\t`'\",;:()<>", r) }) {
				// In gzip's it is a slip of the pen: it names GFDL-1.3 elsewhere.
				if strings.HasPrefix(word, "/usr/share/common-licenses/") && !strings.HasSuffix(word, "/GFDL-3") {
					i.resolve(t, strings.TrimSuffix(word, "."))
				}
			}
		}
		for _, m := range linked(t, i) {
			module, _, _ := strings.Cut(m, " ")
			if module != "github.com/replicatedhq/ekco" && !hasLicence(i, licencesPath+module+"/") {
				t.Errorf("module %s has no licence in the image", module)
			}
		}
	})
}

func hasLicence(i image, dir string) bool {
	for file := range maps.Keys(i.files) {
		found := i.files[file]
		if strings.HasPrefix(file, dir) && found.Typeflag == tar.TypeReg && len(found.content) > 100 {
			return true
		}
	}
	return false
}
