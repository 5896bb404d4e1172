package actions_test

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

// ofCapabilities are words of what EKCO can do, which its engine does not know.
var ofCapabilities = regexp.MustCompile(`(?i)node|pod|purge|ceph|osd|etcd|rook|kubeadm`)

// Comments may give examples.
func TestTheEngineOfActionsNamesNothingOfWhatTheyDo(t *testing.T) {
	for folder, known := range map[string][]string{
		".": nil,
		// A field of action.requested, which takes the most space in the mirror.
		"mirror": {"Pods"},
	} {
		for name, source := range sources(t, folder) {
			for _, word := range words(source) {
				if ofCapabilities.MatchString(word) && !slices.Contains(known, word) {
					t.Errorf("%s says %s", name, word)
				}
			}
		}
	}
}

// sources returns the product's Go files of a folder.
func sources(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
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

// words returns the names and texts of a source.
func words(source []byte) (found []string) {
	files := token.NewFileSet()
	var s scanner.Scanner
	s.Init(files.AddFile("", files.Base(), len(source)), source, nil, 0)
	for {
		switch _, tok, text := s.Scan(); tok {
		case token.EOF:
			return found
		case token.IDENT, token.STRING:
			found = append(found, text)
		}
	}
}
