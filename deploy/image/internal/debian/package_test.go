package debian

import (
	"strings"
	"testing"
)

var digest = strings.Repeat("0123456789abcdef", 4)

var paragraphs = `Package: bash
Version: 5.2.37-2+b10
Architecture: amd64
Source: bash (5.2.37-2)
Description: GNU Bourne Again SHell
 Version: of a description is no field
SHA256: ` + digest + `

Package: dash
Version: 0.5.12-12
Architecture: amd64
SHA256: ` + digest + "\n\n"

func TestParse(t *testing.T) {
	packages, err := Parse([]byte(paragraphs))
	if err != nil || len(packages) != 2 {
		t.Fatalf("%d packages, %v", len(packages), err)
	}
	bash, dash := packages[0], packages[1]
	if bash.Version != "5.2.37-2+b10" || bash.Source != "bash" || bash.SourceVersion != "5.2.37-2" || bash.SHA256 != digest {
		t.Errorf("bash is %+v", bash)
	}
	if dash.Source != "dash" || dash.SourceVersion != "0.5.12-12" {
		t.Errorf("dash is from %s %s, want itself", dash.Source, dash.SourceVersion)
	}
}

func TestParseRefusesWhatIsNoPackage(t *testing.T) {
	for _, text := range []string{"", "Package: bash\nVersion: 1\nArchitecture: amd64\n", strings.Replace(paragraphs, "Version: 0.5", "Vers: 0.5", 1)} {
		if packages, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q: got %+v", text, packages)
		}
	}
}

func TestStatusSaysThatPackagesAreInstalled(t *testing.T) {
	packages, err := Parse([]byte(paragraphs))
	if err != nil {
		t.Fatal(err)
	}
	status := string(Status(packages))
	if !strings.HasPrefix(status, "Package: bash\nStatus: install ok installed\nVersion: 5.2.37-2+b10\n") ||
		!strings.Contains(status, "\n\nPackage: dash\nStatus: install ok installed\n") || strings.Contains(status, "SHA256") {
		t.Errorf("got\n%s", status)
	}
}
