package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
)

// promptOutput is output for several writers, such as a log and a command, with a prompt. While a question waits for
// its answer, it holds the other output back.
type promptOutput struct {
	w io.Writer

	mu     sync.Mutex
	asking bool
	held   backlog
}

// maxHeld is how many bytes of that output are kept: the answer may not come for hours.
const maxHeld = 256 << 10

// backlog keeps the end of what is written to it.
type backlog struct {
	content []byte
	left    int // bytes left out
}

// add keeps up to twice maxHeld, so that not every write copies all of it.
func (b *backlog) add(content []byte) {
	b.content = append(b.content, content...)
	if len(b.content) > 2*maxHeld {
		b.trim()
	}
}

// trim drops the beginning, in whole lines if possible.
func (b *backlog) trim() {
	cut := len(b.content) - maxHeld
	if cut <= 0 {
		return
	}
	if end := bytes.IndexByte(b.content[cut-1:], '\n'); end >= 0 && cut+end < len(b.content) {
		cut += end
	}
	b.left += cut
	b.content = bytes.Clone(b.content[cut:])
}

// flush writes the content and empties the backlog. It ignores write errors, since a lost reader must not end the
// command.
func (b *backlog) flush(w io.Writer) {
	b.trim()
	if b.left > 0 {
		_, _ = fmt.Fprintf(w, "(%d bytes that were written while the question waited are left out)\n", b.left)
	}
	_, _ = w.Write(b.content)
	*b = backlog{}
}

// Write implements io.Writer.
func (p *promptOutput) Write(content []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking {
		p.held.add(content)
		return len(content), nil
	}
	return p.w.Write(content)
}

// ask prints a question and returns the answer, in lower case and without blanks around it. It returns ctx's error if
// ctx ends first; a read of in may still be in progress then.
func (p *promptOutput) ask(ctx context.Context, in io.Reader, question string) (string, error) {
	if err := p.begin(question); err != nil {
		return "", err
	}
	answers := make(chan answer[string], 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if line != "" {
			err = nil
		}
		answers <- answer[string]{strings.ToLower(strings.TrimSpace(line)), err}
	}()
	select {
	case a := <-answers:
		return a.value, p.end(a.err)
	case <-ctx.Done():
		_, _ = fmt.Fprintln(p.w)
		return "", p.end(ctx.Err())
	}
}

func (p *promptOutput) begin(question string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.w, question); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	p.asking = true
	return nil
}

// end writes what was held back.
func (p *promptOutput) end(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	p.held.flush(p.w)
	return err
}
