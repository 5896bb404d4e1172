package sbom

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/deploy/image/internal/debian"
	"github.com/replicatedhq/ekco/deploy/image/internal/program"
)

// Contents is what the SBOM lists.
type Contents struct {
	// Image is the image's name without a version.
	Image                 string
	Version, Architecture string
	Commit                string
	Created               time.Time
	Program               program.Program
	Packages              []debian.Package
	// Licences is the directory of the image with the licences of Go modules.
	Licences string
}

// Write returns the document. The same contents are the same bytes.
func Write(c Contents) ([]byte, error) {
	doc := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT",
		Name:     c.Image + ":" + c.Version + " linux/" + c.Architecture,
		Creation: creation{Created: c.Created.UTC().Format(time.RFC3339), Creators: []string{"Tool: ekco-deploy-image"}},
	}
	doc.add("SPDXRef-DOCUMENT", "DESCRIBES", c.image())
	doc.add("SPDXRef-Image", "CONTAINS", c.ekco())
	for _, p := range c.Packages {
		doc.add("SPDXRef-Image", "CONTAINS", debianPackage(p))
	}
	doc.add("SPDXRef-Ekco", "DEPENDS_ON", c.module(c.Program.Standard, "pkg:golang/stdlib@"+c.Program.Standard.Version))
	for _, m := range c.Program.Modules {
		doc.add("SPDXRef-Ekco", "DEPENDS_ON", c.module(m, goURL(m)))
	}
	content, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	// Each document must have a namespace of its own.
	sum := sha256.Sum256(content)
	doc.Namespace = fmt.Sprintf("https://github.com/replicatedhq/ekco/sbom/%s/%s/%x", c.Version, c.Architecture, sum[:16])
	content, err = json.MarshalIndent(doc, "", " ")
	return append(content, '\n'), err
}

func (d *document) add(from, kind string, thing item) {
	d.Packages = append(d.Packages, thing)
	d.Relationships = append(d.Relationships, relationship{From: from, Type: kind, To: thing.ID})
}

// undetermined is an item whose licence and copyright were not examined.
func undetermined(id, name, version, purpose string) item {
	return item{
		ID: id, Name: name, Version: version, Purpose: purpose,
		DownloadLocation: noAssertion, Concluded: noAssertion, Declared: noAssertion, Copyright: noAssertion,
	}
}

func (c Contents) image() item {
	return undetermined("SPDXRef-Image", c.Image, c.Version, "CONTAINER")
}

func (c Contents) ekco() item {
	i := undetermined("SPDXRef-Ekco", "github.com/replicatedhq/ekco", c.Version, "APPLICATION")
	sum := sha256.Sum256(c.Program.Content)
	i.Checksums = []checksum{{Algorithm: "SHA256", Value: hex.EncodeToString(sum[:])}}
	i.SourceInfo = "built from commit " + c.Commit + " with " + c.Program.Go
	i.Comment = "/usr/bin/ekco; the checksum is that of this file"
	i.References = packageURL("pkg:golang/github.com/replicatedhq/ekco@" + c.Version)
	return i
}

func debianPackage(p debian.Package) item {
	i := undetermined("SPDXRef-deb-"+id(p.Name), p.Name, p.Version, "LIBRARY")
	i.Supplier = "Organization: Debian"
	i.Checksums = []checksum{{Algorithm: "SHA256", Value: p.SHA256}}
	i.SourceInfo = "built from source package " + p.Source + " " + p.SourceVersion
	i.LicenceComments = "see /usr/share/doc/" + p.Name + "/copyright in the image"
	i.Comment = "the checksum is that of the .deb"
	i.References = packageURL("pkg:deb/debian/" + url.QueryEscape(p.Name) + "@" + url.QueryEscape(p.Version) + "?arch=" + p.Architecture + "&distro=debian-13")
	return i
}

func (c Contents) module(m program.Module, locator string) item {
	i := undetermined("SPDXRef-go-"+id(m.Path), m.Path, m.Version, "LIBRARY")
	i.Declared = m.Licence()
	i.LicenceComments = "recognised in the texts that are in /" + c.Licences + "/" + m.Path + " in the image"
	if m.Sum != "" {
		i.Comment = "in go.sum as " + m.Sum
	}
	i.References = packageURL(locator)
	return i
}

// goURL returns the package URL of a module, with the path in lower case and the version escaped.
func goURL(m program.Module) string {
	return "pkg:golang/" + strings.ToLower(m.Path) + "@" + url.QueryEscape(m.Version)
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func id(name string) string { return notInID.ReplaceAllString(name, "-") }
