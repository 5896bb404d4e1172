// Command times prints the slowest packages and tests of "go test -json" runs. Its
// arguments are the files with their output. Run the tests with "-exec
// test/times/exec.sh", which measures CPU time.
//
// The CPU time of a test is that of the programs which it and its subtests started
// (package child). The CPU time inside the test binary cannot be attributed to a
// test, so a test that starts no program has none. WAITING is wall time minus CPU
// time: 0 if several processors were busy.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// rows is the maximum number of printed packages, and of printed tests.
const rows = 40

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "times:", err)
		os.Exit(1)
	}
}

func run(paths []string, to io.Writer) error {
	if len(paths) == 0 {
		return errors.New("no results of tests: run \"make test\" first")
	}
	all := results{}
	for _, path := range paths {
		if err := all.readFile(path); err != nil {
			return err
		}
	}
	return all.print(to)
}

// name identifies a package, or a test in it. run is the file with its output: a package that ran with and without the
// race detector has two entries.
type name struct{ run, pkg, test string }

// result has times in seconds.
type result struct {
	wall, cpu float64
	hasCPU    bool
}

type results map[name]*result

func (r results) of(n name) *result {
	if r[n] == nil {
		r[n] = &result{}
	}
	return r[n]
}

func (r results) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	run := strings.TrimSuffix(filepath.Base(path), ".json")
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for number := 1; lines.Scan(); number++ {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s:%d: not an event of go test -json: %w", path, number, err)
		}
		r.add(run, e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func (r results) add(run string, e event) {
	own := name{run, e.Package, e.Test}
	switch e.Action {
	case "pass", "fail":
		r.of(own).wall = e.Elapsed
	case "output":
		var wall, first, second float64
		if n, _ := fmt.Sscanf(e.Output, "time of the test binary: %f s wall, %f s user, %f s system", &wall, &first, &second); n == 3 {
			// This includes all programs except descendants of killed programs, which package child logs.
			r.of(name{run, e.Package, ""}).use(first + second)
		}
		_, line, _ := strings.Cut(e.Output, "CPU time of programs: ")
		if n, _ := fmt.Sscanf(line, "%f s ended, %f s killed", &first, &second); n == 2 {
			r.of(name{run, e.Package, ""}).use(second)
			for test := e.Test; test != ""; test = parent(test) {
				r.of(name{run, e.Package, test}).use(first + second)
			}
		}
	}
}

func (r *result) use(cpu float64) { r.cpu, r.hasCPU = r.cpu+cpu, true }

// parent returns the test that has this subtest, or "".
func parent(test string) string { return test[:max(0, strings.LastIndex(test, "/"))] }

func (r results) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, kind := range []string{"PACKAGE", "TEST"} {
		fmt.Fprintf(table, "WALL s\tCPU s\tWAITING s\t  %s\n", kind)
		var names []name
		for n := range r {
			if (n.test != "") == (kind == "TEST") {
				names = append(names, n)
			}
		}
		slices.SortFunc(names, func(a, b name) int {
			return cmp.Or(cmp.Compare(r[b].wall, r[a].wall), strings.Compare(a.pkg+a.test+a.run, b.pkg+b.test+b.run))
		})
		for _, n := range names[:min(rows, len(names))] {
			_, pkg, _ := strings.Cut(n.pkg, "/ekco/")
			fmt.Fprintf(table, "%s\t  %s: %s %s\n", r[n], n.run, pkg, n.test)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func (r *result) String() string {
	if !r.hasCPU {
		return fmt.Sprintf("%.1f\t-\t-", r.wall)
	}
	return fmt.Sprintf("%.1f\t%.1f\t%.1f", r.wall, r.cpu, max(0, r.wall-r.cpu))
}
