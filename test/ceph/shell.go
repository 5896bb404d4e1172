package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/replicatedhq/ekco/test/await"
)

// shell is an interactive ceph process. Starting ceph takes a second of CPU time, a command in a running one
// a few milliseconds.
type shell struct {
	program  *exec.Cmd
	stdin    io.Writer
	answers  *json.Decoder
	problems bytes.Buffer
}

// ask runs a command, such as "status", and decodes its output.
func (c *Cluster) ask(question string, answer any) {
	c.t.Helper()
	if c.shell == nil {
		c.shell = c.startShell()
	}
	a := c.shell
	late := time.AfterFunc(await.HangTimeout, func() { _ = a.program.Process.Kill() }) // it fails if the process has ended
	defer late.Stop()
	_, err := fmt.Fprintln(a.stdin, question)
	if err == nil {
		err = a.answers.Decode(answer)
	}
	if err != nil {
		c.t.Fatalf("ask ceph for %s: %v", question, err)
	}
}

func (c *Cluster) startShell() *shell {
	c.t.Helper()
	argv := append(c.Program(), "-f", "json")
	a := &shell{program: exec.CommandContext(context.Background(), argv[0], argv[1:]...)}
	a.program.Stderr = &a.problems
	to, err := a.program.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	answers, err := a.program.StdoutPipe()
	if err == nil {
		err = a.program.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	a.stdin, a.answers = to, json.NewDecoder(answers)
	c.t.Cleanup(func() {
		_ = a.program.Process.Kill() // it fails if the process has ended
		_ = a.program.Wait()
		if c.t.Failed() {
			c.t.Logf("stderr of the interactive ceph:\n%s", a.problems.Bytes())
		}
	})
	return a
}
