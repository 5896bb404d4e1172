package config

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of keys into docs/configuration.md")

const (
	docs       = "../../docs/configuration.md"
	tableStart = "<!-- keys: written by `go test ./internal/config -update` -->\n"
	tableEnd   = "<!-- end of keys -->\n"
)

func keyTable() string {
	var out strings.Builder
	out.WriteString("| key | default | type | meaning |\n|---|---|---|---|\n")
	defaults := Default()
	keys := defaults.keys()
	// Those that do something come first.
	slices.SortStableFunc(keys, func(a, b key) int { return cmpBool(idle(a), idle(b)) })
	for _, k := range keys {
		byDefault := "`" + format(k.value) + "`"
		if format(k.value) == "" {
			byDefault = "(empty)"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", k.name, byDefault, kindOf(k.value), k.meaning())
	}
	return out.String()
}

// idle reports whether the meaning of a key says that it has no effect.
func idle(k key) bool { return strings.Contains(k.meaning(), "has no effect yet") }

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func TestTheDocumentationListsEveryKey(t *testing.T) {
	content, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), tableStart)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the table of keys", docs)
	}
	if *update {
		if err := os.WriteFile(docs, []byte(before+tableStart+keyTable()+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(keyTable(), table); diff != "" {
		t.Errorf("%s is not up to date: %s", docs, diff)
	}
}
