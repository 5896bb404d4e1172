package ceph

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// commandsProgram is the program of a session.
//
//go:embed commands.py
var commandsProgram string

// session is a process that runs commands of the test itself. A ceph process takes half a second of CPU time, a command
// in a session 30 ms. One goroutine at a time uses a session.
type session struct {
	process  *exec.Cmd
	stdin    io.WriteCloser
	requests *json.Encoder
	answers  *json.Decoder
	problems bytes.Buffer
}

// ask runs a query, such as "osd dump", and decodes its answer.
func (c *Cluster) ask(query string, answer any) {
	c.t.Helper()
	text := c.Ceph(append(strings.Fields(query), "-f", "json")...)
	if err := json.Unmarshal([]byte(text), answer); err != nil {
		c.t.Fatalf("ceph %s answers %q: %v", query, text, err)
	}
}

// request hands a request to a session and returns the output. If there is no answer within the limit, the session
// ends, and with it the request. Any goroutine may call it.
func (c *Cluster) request(limit time.Duration, do string, args []string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	what := fmt.Sprintf("ceph: %s %.200q", do, args)
	s, err := c.takeSession()
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	keep := context.AfterFunc(ctx, s.kill)
	var answer struct{ Output, Error string }
	err = s.requests.Encode(map[string]any{"do": do, "args": args})
	if err == nil {
		err = s.answers.Decode(&answer)
	}
	switch {
	case !keep():
		s.end()
		return "", fmt.Errorf("%s: %w", what, ctx.Err())
	case err != nil:
		s.end()
		return "", fmt.Errorf("%s: the session has ended: %w\n%s", what, err, s.problems.Bytes())
	}
	c.mu.Lock()
	c.idle = append(c.idle, s)
	c.mu.Unlock()
	if answer.Error != "" {
		err = errors.New(what + ": " + answer.Error)
	}
	return answer.Output, err
}

// takeSession takes an idle session, or starts one.
func (c *Cluster) takeSession() (*session, error) {
	c.mu.Lock()
	if last := len(c.idle) - 1; last >= 0 {
		s := c.idle[last]
		c.idle = c.idle[:last]
		c.mu.Unlock()
		return s, nil
	}
	c.mu.Unlock()
	// Debian's rados module is for Debian's Python only. -c leaves the input to the program.
	s := &session{process: exec.CommandContext(context.Background(), "/usr/bin/python3", "-c", commandsProgram, c.conf)}
	s.process.Stderr = &s.problems
	var err error
	if s.stdin, err = s.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.requests, s.answers = json.NewEncoder(s.stdin), json.NewDecoder(stdout)
	return s, s.process.Start()
}

func (s *session) kill() { _ = s.process.Process.Kill() } // it fails if the process has ended

// end ends the process and waits for it, so that its CPU time counts.
func (s *session) end() {
	s.kill()
	_ = s.process.Wait()
}

func (c *Cluster) endSessions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.idle {
		s.end()
	}
}
