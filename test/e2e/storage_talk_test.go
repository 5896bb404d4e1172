package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"
)

// converses reports whether the command reads questions from its input.
func (r execRequest) converses() bool {
	return len(r.Argv) > 2 && r.Argv[0] == "env" && r.Argv[1] == "PYTHONUNBUFFERED=1"
}

var errCommandAndInput = errors.New("a command and input: the command would read what are questions")

// converse runs a ceph that reads questions from its input, of which each is in the
// record. One that would change something is not passed on.
func (b *bridge) converse(request execRequest, input io.Reader, answers *json.Encoder) {
	began := time.Now()
	refuse := func(words []string, why string) {
		b.record(execCall{Pod: request.Pod, Container: request.Container, Ceph: words, Began: began, Ended: time.Now(), ExitCode: 126, Refused: why})
		_ = answers.Encode(execAnswer{Stderr: []byte(why), ExitCode: 126, Over: true})
	}
	words, err := cephWords(request)
	if err == nil && len(words) > 0 {
		err = errCommandAndInput
	}
	if err != nil {
		refuse(words, err.Error())
		return
	}
	cmd := b.command(request)
	answer := &answering{to: answers}
	cmd.Stdout, cmd.Stderr = answer.part(func(p []byte) execAnswer { return execAnswer{Stdout: p} }), answer.part(func(p []byte) execAnswer { return execAnswer{Stderr: p} })
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		refuse(nil, err.Error())
		return
	}
	go func() {
		defer stdin.Close()
		for lines := bufio.NewScanner(input); lines.Scan(); {
			call := execCall{Pod: request.Pod, Container: request.Container, Ceph: strings.Fields(lines.Text()), Began: time.Now(), Ended: time.Now()}
			switch {
			case len(call.Ceph) == 0: // the end of the request's line
				continue
			case call.changes():
				call.Refused, call.ExitCode = "a change has to be a command of its own", 126
				b.record(call)
				return
			}
			b.record(call)
			if _, err := io.WriteString(stdin, lines.Text()+"\n"); err != nil {
				return
			}
		}
	}()
	_ = cmd.Wait()
	answer.say(execAnswer{ExitCode: cmd.ProcessState.ExitCode(), Over: true})
}

// answering passes on what a command says, as it says it.
type answering struct {
	mu sync.Mutex
	to *json.Encoder
}

func (a *answering) say(said execAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = a.to.Encode(said) // the program may be gone with the exec
}

func (a *answering) part(of func([]byte) execAnswer) io.Writer {
	return part(func(p []byte) { a.say(of(p)) })
}

type part func([]byte)

// Write implements [io.Writer].
func (w part) Write(p []byte) (int, error) { w(p); return len(p), nil }
