package ceph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/replicatedhq/ekco/test/await"
)

// run runs a program for the test itself and returns its standard output.
func run(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String(), nil
}

func (c *Cluster) must(argv ...string) string {
	c.t.Helper()
	output, err := run(exec.CommandContext(c.t.Context(), argv[0], argv[1:]...))
	if err != nil {
		c.t.Fatal(err)
	}
	return output
}

// Program returns the command line of ceph for this cluster.
func (c *Cluster) Program() []string { return []string{"ceph", "--conf", c.conf} }

// Conf returns the path of ceph.conf. With this path in CEPH_CONF, plain ceph commands use the cluster.
func (c *Cluster) Conf() string { return c.conf }

// Ceph runs a ceph command, and ends the test if it fails. It waits at most 10 minutes for a monitor.
func (c *Cluster) Ceph(args ...string) string {
	c.t.Helper()
	output, err := c.Try(args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return output
}

// Try is Ceph for any goroutine. It returns an error instead of ending the test.
func (c *Cluster) Try(args ...string) (string, error) {
	return c.request(await.HangTimeout, "command", args)
}

// CreatePool creates a pool with this number of copies, on different hosts, and this number of placement groups.
func (c *Cluster) CreatePool(name string, copies, groups int) {
	c.t.Helper()
	c.Ceph("osd", "pool", "create", name, strconv.Itoa(groups))
	c.Ceph("osd", "pool", "set", name, "size", strconv.Itoa(copies), "--yes-i-really-mean-it")
	c.Ceph("osd", "pool", "application", "enable", name, "test")
}

// Write stores an object.
func (c *Cluster) Write(pool, object, content string) {
	c.t.Helper()
	if _, err := c.request(await.HangTimeout, "write", []string{pool, object, content}); err != nil {
		c.t.Fatal(err)
	}
}

// Read returns the content of an object.
func (c *Cluster) Read(pool, object string) string {
	c.t.Helper()
	content, err := c.TryRead(pool, object)
	if err != nil {
		c.t.Fatal(err)
	}
	return content
}

// TryRead is Read for any goroutine; it returns an error. A placement group that lost an OSD serves no reads until
// other OSDs have noticed the loss.
func (c *Cluster) TryRead(pool, object string) (string, error) {
	return c.ReadWithin(pool, object, await.HangTimeout)
}

// ReadWithin is TryRead with another limit.
func (c *Cluster) ReadWithin(pool, object string, limit time.Duration) (string, error) {
	content, err := c.request(limit, "read", []string{pool, object})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("read %s of pool %s: no answer within %s; is the pool served?", object, pool, limit)
	}
	return content, err
}

// Runner runs commands on this machine, in place of an exec in a pod. It implements InteractiveRunner of internal/ceph.
type Runner struct{}

// OneByOne is a Runner without interactive commands.
type OneByOne struct{}

// Run implements the Runner of internal/ceph.
func (OneByOne) Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	return Runner{}.Run(ctx, argv)
}

// Run implements the Runner of internal/ceph.
func (Runner) Run(ctx context.Context, argv []string) (stdout, stderr []byte, exitCode int, err error) {
	var out, problems bytes.Buffer
	exitCode, err = Runner{}.Interact(ctx, "", argv, nil, &out, &problems)
	if ctx.Err() != nil {
		return nil, nil, 0, ctx.Err()
	}
	return out.Bytes(), problems.Bytes(), exitCode, err
}

// Place implements InteractiveRunner of internal/ceph.
func (Runner) Place(context.Context) (string, error) { return "this machine", nil }

// Interact implements InteractiveRunner of internal/ceph.
func (Runner) Interact(ctx context.Context, _ string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (exitCode int, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	// timeout(1) forwards SIGTERM to the program that it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case errors.As(err, &exit):
		return exit.ExitCode(), nil
	}
	return 0, err
}
