package ring

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ofCapabilities are words of what EKCO can do, which its engines do not know.
var ofCapabilities = regexp.MustCompile(`(?i)node|pod|purge|ceph|osd|etcd|rook|kubeadm|minio|prometheus|alertmanager|monitoring|envoy|contour|load.?balancer|haproxy|csr|kubelet|certificate|kotsadm|rqlite|statefulset|replicas|webhook`)

// engines are the folders of the engines, with the words that each may say all the same.
var engines = map[string][]string{
	"fsm":            nil,
	"actions":        nil,
	"actions/mirror": nil,
	"observers":      nil,
	// Methods of the Kubernetes client that the ring stands before, the field of every
	// event's subject by which history is searched, and what the ring's start, and its
	// health, are said to wait for.
	"cmd/internal/ring": {
		"Node", "node", "Pod", "pod", "DeleteNode", "ForceDeletePod", `"node"`,
		`"list the nodes"`, `"the Kubernetes API does not answer, or EKCO has not listed the nodes yet"`,
	},
}

func TestNoEngineNamesWhatItIsUsedFor(t *testing.T) {
	for folder, known := range engines {
		for name, source := range sources(t, folder) {
			for _, found := range nounsIn(name, source, known) {
				t.Error(found)
			}
		}
	}
}

// TestTheNounsOfEveryCapabilityAreKnown: a room that is new has words of its own.
func TestTheNounsOfEveryCapabilityAreKnown(t *testing.T) {
	entries, err := os.ReadDir("../../../fsm")
	if err != nil {
		t.Fatal(err)
	}
	rooms := 0
	for _, entry := range entries {
		if !entry.IsDir() || strings.HasSuffix(entry.Name(), "test") {
			continue
		}
		if rooms++; !ofCapabilities.MatchString(entry.Name()) {
			t.Errorf("%q is a capability, and no noun that the engines must not know", entry.Name())
		}
	}
	if rooms < 5 {
		t.Errorf("there are only %d capabilities", rooms)
	}
	linter, err := os.ReadFile("../../../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	words, _ := strings.CutPrefix(ofCapabilities.String(), "(?i)")
	if !strings.Contains(string(linter), "pattern: (?i)("+words+")\n") {
		t.Errorf(".golangci.yml has not the same nouns: %s", words)
	}
}

func TestANounIsFoundInCodeAndNotInComments(t *testing.T) {
	source := "package x\n\n// Pods and nodes.\nvar nodes = 1 // a pod\n\nvar s = \"the Pods\"\n\nvar Pods = 2\n"
	if got := strings.Join(nounsIn("x.go", []byte(source), []string{"Pods"}), " "); got != `x.go:4:5: nodes x.go:6:9: "the Pods"` {
		t.Errorf("found %s", got)
	}
}

// sources returns the product's Go files of a folder.
func sources(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../../..", folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]byte)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if found[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if len(found) < 5 {
		t.Fatalf("%s has only %d files", folder, len(found))
	}
	return found
}

// nounsIn returns the names and texts of Go source, outside of comments, that name
// something of a capability.
func nounsIn(name string, source []byte, known []string) (found []string) {
	files := token.NewFileSet()
	var words scanner.Scanner
	words.Init(files.AddFile(name, -1, len(source)), source, nil, 0)
	for {
		at, kind, text := words.Scan()
		if kind == token.EOF {
			return found
		}
		if ofCapabilities.MatchString(text) && !slices.Contains(known, text) {
			found = append(found, files.Position(at).String()+": "+text)
		}
	}
}
