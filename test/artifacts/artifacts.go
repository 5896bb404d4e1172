// Package artifacts keeps data that explains a failed test: outputs of programs, journals, and the list of processes.
// The files are in BINARY/TEST below $EKCO_TEST_ARTIFACTS, by default /tmp/ekco-test-artifacts.
package artifacts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// shownLines is the number of lines of each artifact that the failed test logs.
const shownLines = 50

// begun has the directories of failed tests to which this process has written.
var begun sync.Map

// Keep writes an artifact of a failed test, and logs its path and its last lines. The first call for a test also writes
// the list of processes. Call it in a cleanup that runs before the processes are stopped. It logs an error if it cannot
// write the artifact.
func Keep(tb testing.TB, name string, content []byte) {
	tb.Helper()
	tb.Logf("%s: %s\n%s", name, write(tb, name, content), lastLines(content, shownLines))
}

// write returns the path of the artifact, or an error text.
func write(tb testing.TB, name string, content []byte) string {
	dir, err := directory(tb)
	path := filepath.Join(dir, clean(name))
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		return fmt.Sprintf("cannot be kept: %v", err)
	}
	return path
}

// KeepFiles keeps the files of a directory that match a [filepath.Glob] pattern, and logs their paths.
func KeepFiles(tb testing.TB, dir, pattern string) {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		tb.Logf("cannot keep %s: %v", pattern, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			content = []byte(err.Error())
		}
		name := strings.TrimPrefix(path, filepath.Clean(dir)+"/")
		tb.Logf("%s: %s", name, write(tb, name, content))
	}
}

// Processes writes the list of running processes, unless the test already has one. Call
// it before processes are stopped; Keep would write the list too late.
func Processes(tb testing.TB) {
	tb.Helper()
	if _, err := directory(tb); err != nil {
		tb.Logf("the list of processes cannot be kept: %v", err)
	}
}

// directory returns the directory of a test. The first call removes files of an earlier run, and writes the list of
// processes.
func directory(tb testing.TB) (string, error) {
	base := cmp.Or(os.Getenv("EKCO_TEST_ARTIFACTS"), filepath.Join(os.TempDir(), "ekco-test-artifacts"))
	binary := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
	dir := filepath.Join(base, binary, clean(tb.Name()))
	if _, isFilled := begun.LoadOrStore(dir, true); isFilled {
		return dir, nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return dir, err
	}
	return dir, os.WriteFile(filepath.Join(dir, "processes"), listProcesses(), 0o600)
}

// clean replaces characters that cause problems in a file name.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\ "':*`, r) {
			return '_'
		}
		return r
	}, name)
}

func lastLines(content []byte, lines int) []byte {
	content = bytes.TrimRight(content, "\n")
	start := len(content)
	for range lines {
		if start = bytes.LastIndexByte(content[:start], '\n'); start < 0 {
			return content
		}
	}
	return content[start+1:]
}

// listProcesses returns a line for each process: its id, its parent's id, its state, and its command line.
func listProcesses() []byte {
	var list bytes.Buffer
	fmt.Fprintln(&list, "PID PARENT STATE COMMAND")
	stats, _ := fs.Glob(os.DirFS("/proc"), "[0-9]*/stat") // the pattern is valid
	for _, path := range stats {
		stat, err := os.ReadFile(filepath.Join("/proc", path))
		if err != nil {
			continue // the process has ended
		}
		// The program's name, in parentheses, may contain any character.
		pid, rest, _ := strings.Cut(string(stat), " ")
		end := strings.LastIndexByte(rest, ')')
		state, parent := "?", "?"
		if fields := strings.Fields(rest[end+1:]); len(fields) > 1 {
			state, parent = fields[0], fields[1]
		}
		command, err := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if err != nil || len(command) == 0 {
			command = []byte(rest[:end+1])
		}
		fmt.Fprintln(&list, pid, parent, state, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")))
	}
	return list.Bytes()
}
