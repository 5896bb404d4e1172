package observers

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// noun is what the engine may name in comments only, as an example.
var noun = regexp.MustCompile(`(?i)node|pod`)

func TestTheEngineNamesNothingThatIsObserved(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		read++
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range nounsIn(name, source) {
			t.Error(found)
		}
	}
	if read == 0 {
		t.Error("no file of the engine was read")
	}
}

func TestANounIsFoundInCodeAndNotInComments(t *testing.T) {
	source := "package x\n\n// Pods and nodes.\nvar nodes = 1 // a pod\n\nvar s = \"the Pods\"\n"
	if got := strings.Join(nounsIn("x.go", []byte(source)), " "); got != `x.go:4:5: nodes x.go:6:9: "the Pods"` {
		t.Errorf("found %s", got)
	}
}

// nounsIn returns the words of Go source outside of comments that name something
// that is observed.
func nounsIn(name string, source []byte) []string {
	files := token.NewFileSet()
	var words scanner.Scanner
	words.Init(files.AddFile(name, -1, len(source)), source, nil, 0)
	var found []string
	for {
		at, kind, text := words.Scan()
		if kind == token.EOF {
			return found
		}
		if noun.MatchString(text) {
			found = append(found, files.Position(at).String()+": "+text)
		}
	}
}
