package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALongLineIsBrokenBetweenWordsAndNotInACommand(t *testing.T) {
	for line, want := range map[string]string{
		"":                                     "",
		"short":                                "short",
		"one two three four five six":          "one two three four\n    five six",
		"  one two three four five six":        "  one two three four\n      five six",
		"a \x1b[31mred word\x1b[0m fits":       "a \x1b[31mred word\x1b[0m fits",
		"to stop it now: ekco cancel w3; then": "to stop it now:\n    ekco cancel w3;\n    then",
		"remove it: kubectl patch node w1 --type merge": "remove it:\n    kubectl patch \\\n    node w1 --type \\\n    merge",
		"an-unbreakable-path-of-a-file is":              "an-unbreakable-path-of-a-file\n    is",
		"cells   of  tables  keep the words":            "cells   of  tables\n    keep the words",
	} {
		var out strings.Builder
		if n, err := Wrap(&out, 20).Write([]byte(line + "\n")); n != len(line)+1 || err != nil {
			t.Errorf("%d bytes of %q are written: %v", n, line, err)
		}
		if diff := cmp.Diff(want+"\n", out.String()); diff != "" {
			t.Errorf("%q becomes (-want +got):\n%s", line, diff)
		}
	}
	if w := Wrap(nil, 0); w != nil {
		t.Error("without a width, lines are wrapped")
	}
}
