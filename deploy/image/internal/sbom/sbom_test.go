package sbom

import (
	"bytes"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/replicatedhq/ekco/deploy/image/internal/debian"
	"github.com/replicatedhq/ekco/deploy/image/internal/program"
)

func contents() Contents {
	digest := strings.Repeat("a", 64)
	return Contents{
		Image: "docker.io/replicated/ekco", Version: "v1.2.3", Architecture: "amd64", Commit: "0123456789ab",
		Created: time.Unix(1_790_000_000, 0), Licences: "usr/share/licenses/ekco",
		Program: program.Program{
			Content: []byte("ELF"), Go: "go1.26.8",
			Standard: program.Module{Path: "std", Version: "1.26.8"},
			Modules: []program.Module{{
				Path: "github.com/Some/module/v2", Version: "v2.0.0+incompatible", Sum: "h1:x",
				Licences: map[string][]byte{"LICENSE": []byte("Licensed under the Apache License, Version 2.0")},
			}},
		},
		Packages: []debian.Package{
			{Name: "bash", Version: "1:5.2.37-2+b10", Architecture: "amd64", Source: "bash", SourceVersion: "5.2.37-2", SHA256: digest},
			{Name: "libstdc++6", Version: "14", Architecture: "amd64", Source: "gcc-14", SourceVersion: "14", SHA256: digest},
		},
	}
}

// SPDX's own library reads it and finds nothing wrong.
func TestTheDocumentIsSPDX(t *testing.T) {
	content, err := Write(contents())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(content))
	if err != nil {
		t.Fatalf("%v\n%s", err, content)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(doc)
	if err != nil || len(described) != 1 || described[0] != "Image" {
		t.Errorf("the document describes %v, %v; want the image", described, err)
	}
	got := map[string]string{}
	for _, p := range doc.Packages {
		if len(p.PackageExternalReferences) > 0 {
			got[p.PackageName] = p.PackageLicenseDeclared + " " + p.PackageExternalReferences[0].Locator
		}
	}
	for name, want := range map[string]string{
		"bash":                         "NOASSERTION pkg:deb/debian/bash@1%3A5.2.37-2%2Bb10?arch=amd64&distro=debian-13",
		"libstdc++6":                   "NOASSERTION pkg:deb/debian/libstdc%2B%2B6@14?arch=amd64&distro=debian-13",
		"github.com/Some/module/v2":    "Apache-2.0 pkg:golang/github.com/some/module/v2@v2.0.0%2Bincompatible",
		"std":                          "NOASSERTION pkg:golang/stdlib@1.26.8",
		"github.com/replicatedhq/ekco": "NOASSERTION pkg:golang/github.com/replicatedhq/ekco@v1.2.3",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

func TestOtherContentsHaveAnotherNamespace(t *testing.T) {
	namespaces := map[string]bool{}
	for _, change := range []func(*Contents){
		func(*Contents) {}, func(*Contents) {}, // twice the same
		func(c *Contents) { c.Architecture = "arm64" },
		func(c *Contents) { c.Packages = c.Packages[1:] },
	} {
		c := contents()
		change(&c)
		content, err := Write(c)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := spdxjson.Read(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		namespaces[doc.DocumentNamespace] = true
	}
	if len(namespaces) != 3 {
		t.Errorf("namespaces are %v, want three", namespaces)
	}
}
