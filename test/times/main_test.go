package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheSlowestPackagesAndTestsArePrintedFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "unit.json")
	const pkg = `"Package":"example.com/ekco/test/e2e"`
	events := []string{
		`{"Action":"start",` + pkg + `}`,
		`{"Action":"output",` + pkg + `,"Test":"TestA/one","Output":"    child.go:9: CPU time of programs: 1.50 s ended, 2.00 s killed\n"}`,
		`{"Action":"pass",` + pkg + `,"Test":"TestA/one","Elapsed":9}`,
		`{"Action":"output",` + pkg + `,"Test":"TestA","Output":"    child.go:9: CPU time of programs: 1.00 s ended, 0.00 s killed\n"}`,
		`{"Action":"fail",` + pkg + `,"Test":"TestA","Elapsed":10.25}`,
		`{"Action":"pass",` + pkg + `,"Test":"TestB","Elapsed":0.5}`,
		`{"Action":"output",` + pkg + `,"Output":"time of the test binary: 12.0 s wall, 3.0 s user, 1.0 s system\n"}`,
		`{"Action":"pass",` + pkg + `,"Elapsed":12}`,
		`{"Action":"pass","Package":"example.com/ekco/fsm","Elapsed":40}`,
	}
	if err := os.WriteFile(path, []byte(strings.Join(events, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	if err := run([]string{path}, &printed); err != nil {
		t.Fatal(err)
	}
	const want = `WALL s  CPU s  WAITING s  PACKAGE
40.0 - - unit: fsm
12.0 6.0 6.0 unit: test/e2e

WALL s CPU s WAITING s TEST
10.2 4.5 5.8 unit: test/e2e TestA
9.0 3.5 5.5 unit: test/e2e TestA/one
0.5 - - unit: test/e2e TestB

`
	words := func(s string) (lines [][]string) {
		for line := range strings.Lines(s) {
			lines = append(lines, strings.Fields(line))
		}
		return lines
	}
	if diff := cmp.Diff(words(want), words(printed.String())); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
}

func TestResultsThatCannotBeReadAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "unit.json")
	if err := os.WriteFile(path, []byte("{}\nok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		paths []string
		want  string
	}{
		{nil, "make test"},
		{[]string{"no such file"}, "no such file"},
		{[]string{path}, "unit.json:2"},
	} {
		if err := run(test.paths, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.paths, err, test.want)
		}
	}
}
