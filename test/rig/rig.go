package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// Options configures how a test binary runs. All fields are optional.
type Options struct {
	// Fetch has commands with arguments, relative to the test's directory, that install or build what the tests need.
	// They run before Prepare, with the machine's network, and should end quickly if nothing is missing.
	Fetch []string
	// Prepare creates what the tests share. It runs in the namespace. dir is removed after the tests.
	Prepare func(ctx context.Context, dir string) error
	// Parallel is how many parallel tests run at the same time, unless -parallel is
	// given. 0 means the number of processors. It may be more if tests mostly wait.
	Parallel int
	// SkipNetworkCheck is for programs that always try to reach other machines,
	// such as browsers. The namespace stops them.
	SkipNetworkCheck bool
	// SkipGoroutineCheck is for tests that leave goroutines behind.
	SkipGoroutineCheck bool
}

// Main runs the tests and exits. Call it last in TestMain. It needs root. Even if all tests pass, it fails if a process
// tried to reach an address outside the namespace, or if goroutines are left.
func Main(m *testing.M, options Options) {
	code, err := run(m, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M, options Options) (code int, err error) {
	ctx := context.Background()
	isolated, err := isIsolated()
	if err != nil {
		return 0, err
	}
	if !isolated {
		for _, script := range options.Fetch {
			if _, err := Run(ctx, script); err != nil {
				return 0, err
			}
		}
		return 0, isolate(ctx)
	}
	if err := setParallel(options.Parallel); err != nil {
		return 0, err
	}
	if options.Prepare != nil {
		dir, err := os.MkdirTemp("", "ekco-test-")
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		if err := options.Prepare(ctx, dir); err != nil {
			return 0, err
		}
	}
	if err := useOneProcessor(); err != nil {
		return 0, err
	}
	if code = m.Run(); code != 0 {
		return code, nil
	}
	if !options.SkipGoroutineCheck {
		err = goleak.Find()
	}
	if !options.SkipNetworkCheck {
		err = errors.Join(err, checkNothingLeft())
	}
	return 0, err
}

// Run runs a command, given as words separated by spaces, and returns its standard output without the last newline.
func Run(ctx context.Context, command string) (string, error) {
	words := strings.Fields(command)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("prepare the tests: %s: %w", command, err)
	}
	return strings.TrimSpace(string(output)), nil
}

// EKCOModules is a command for [Options.Fetch] that downloads the modules of EKCO.
const EKCOModules = "go list -deps ../../cmd/ekco"

// BuildEKCO builds EKCO at path, for hosts and images without a C library. root is the folder of EKCO's module.
func BuildEKCO(ctx context.Context, root, path string) error {
	// go run caches linked programs; go build does not.
	build := exec.CommandContext(ctx, "go", "run", "-exec", "cp", filepath.Join(root, "cmd/ekco"), path)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build ekco: %w: %s", err, output)
	}
	return nil
}

// useOneProcessor lets each Go program that a test starts use one processor, unless GOMAXPROCS is set. A test starts
// dozens of them, which together use all processors, and each takes a fifth less CPU time if its goroutines share one.
// Benchmarks measure programs as they run elsewhere.
func useOneProcessor() error {
	if os.Getenv("GOMAXPROCS") != "" || flag.Lookup("test.bench").Value.String() != "" {
		return nil
	}
	return os.Setenv("GOMAXPROCS", "1")
}

// setParallel sets -parallel unless the command line sets it. 0 changes nothing.
func setParallel(tests int) error {
	flag.Parse()
	given := tests == 0
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(tests))
}
