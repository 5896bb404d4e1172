package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hardWords are those that readers stumble over. "There is none" is plain English, "it is none" is not.
var hardWords = regexp.MustCompile(`(?i)\b(whoever|anew|shall|tells\s+of|leads\s+nowhere|who\s+asks|(\w+\s+)?is\s+none)\b`)

// recorded is output of the program in a page, which stays as it was printed.
var recorded = regexp.MustCompile("(?s)```.*?```")

func TestDocsUsePlainWords(t *testing.T) {
	const root = "../../"
	pages, err := filepath.Glob(root + "docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("found no pages: %v", err)
	}
	pages = append(pages, root+"README.md")
	err = filepath.WalkDir(root+"deploy", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := recorded.ReplaceAllStringFunc(string(content), func(output string) string {
			return strings.Repeat("\n", strings.Count(output, "\n"))
		})
		for _, at := range hardWordsIn(text) {
			line := 1 + strings.Count(text[:at[0]], "\n")
			t.Errorf("%s:%d: replace %q by plain words", strings.TrimPrefix(page, root), line, text[at[0]:at[1]])
		}
	}
}

func TestHardWordsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"It shall be written anew.\nWhoever\nasks": 3,
		"it leads\nnowhere":                        1,
		"there is none, or there\nis none":         0,
		"the address is none":                      1,
		"marshalling, shallow":                     0,
	} {
		if found := hardWordsIn(text); len(found) != want {
			t.Errorf("%q: found %v, want %d", text, found, want)
		}
	}
}

// hardWordsIn returns where each begins and ends.
func hardWordsIn(text string) (found [][]int) {
	for _, at := range hardWords.FindAllStringIndex(text, -1) {
		if words := strings.Fields(strings.ToLower(text[at[0]:at[1]])); words[0] != "there" {
			found = append(found, at)
		}
	}
	return found
}
