package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlattenWritesEachKeyOnOneLine(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"as it is", "a_b: 5m\nc: \"\"\nd: true\n", "a_b: 5m\nc: \"\"\nd: true\n"},
		{"comments", "# one\na: b # two\nc: \"d # no comment\" # three\n", "a: b\nc: \"d # no comment\"\n"},
		{"indentation", "  a: b\n  c: d\n", "a: b\nc: d\n"},
		{"line ends of Windows", "a: b\r\nc: \"d\"\r\n", "a: b\nc: \"d\"\n"},
		{"quotes", "'a': 'it''s \"b\"'\n\"c\": 'd'\n", "a: \"it's \\\"b\\\"\"\nc: \"d\"\n"},
		{"a value on the next line", "a:\n  b\nc: >-\n  d\n  e\n", "a: b\nc: \"d e\"\n"},
		{"several lines", "a: |\n  b\n  \tc\n", "a: \"b\\n\\tc\\n\"\n"},
		{"braces", "{a: b, \"c\": 1}", "a: b\nc: 1\n"},
		{"lists and maps", "a: [x=y, \"1\"]\nb:\n  - c: <1>\n", "a: [\"x=y\",\"1\"]\nb: [{\"c\":\"<1>\"}]\n"},
		{"an alias", "a: &x b\nc: *x\n", "a: b\nc: b\n"},
		{"no value", "a:\nb: ~\nc: d\n", "c: d\n"},
		{"a mark of byte order", "\ufeffa: b\n", "a: b\n"},
		{"other keys", "a-b: c\n\"#d\": e\n\"f: g\": h\n", "a-b: c\n\"#d\": e\n\"f: g\": h\n"},
		{"backslashes and control characters", `a: "b\\c\x01\r"`, "a: \"b\\\\c\\u0001\\r\"\n"},
		{"line breaks of Unicode", `a: "b\u2028c\u2029d\x85e\x7f\ufefff"`, "a: \"b\\u2028c\\u2029d\\u0085e\\u007f\\ufefff\"\n"},
		{"text that is no number", "a: \"010\"\nb: \"true\"\n", "a: \"010\"\nb: \"true\"\n"},
		{"a document", "---\na: b\n...\n", "a: b\n"},
		{"nothing", "# nothing\n\n", ""},
	} {
		got, err := Flatten("config.yaml", []byte(test.content))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.name, got, err, test.want)
			continue
		}
		before, _ := parseYAML("config.yaml", []byte(test.content))
		after, err := parseYAML("config.yaml", got)
		if err != nil {
			t.Errorf("%s: %q: %v", test.name, got, err)
		}
		if diff := cmp.Diff(texts(before), texts(after)); diff != "" {
			t.Errorf("%s: the settings (-before +after):\n%s", test.name, diff)
		}
	}
}

// texts returns the values of the settings.
func texts(settings []setting) map[string]string {
	texts := map[string]string{}
	for _, s := range settings {
		texts[s.name] = s.text + s.problem
	}
	return texts
}

func TestFlattenRefusesWhatTheOperatorRefuses(t *testing.T) {
	for content, want := range map[string]string{
		"a: b: c":    "config.yaml is not valid YAML",
		"- a":        "config.yaml line 1: want keys with values",
		"a: 1\nA: 2": "config.yaml line 2: key a is set already in line 1",
	} {
		if _, err := Flatten("config.yaml", []byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", content, err, want)
		}
	}
}
