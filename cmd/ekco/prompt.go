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

// promptOutput is output that several writers share, such as a log and a command, and that can ask questions. While a
// question waits for an answer, it buffers the other output.
type promptOutput struct {
	w io.Writer

	mu     sync.Mutex
	asking bool
	held   backlog
}

// maxHeld is the maximum number of buffered bytes, because the answer may take hours.
const maxHeld = 256 << 10

// backlog keeps the last part of the bytes that are written to it.
type backlog struct {
	content []byte
	dropped int // bytes
}

// add keeps up to twice maxHeld, so that not every write has to copy the buffer.
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
	b.dropped += cut
	b.content = bytes.Clone(b.content[cut:])
}

// flush writes the content and empties the backlog. It ignores write errors, because the command must continue without
// a reader.
func (b *backlog) flush(w io.Writer) {
	b.trim()
	if b.dropped > 0 {
		_, _ = fmt.Fprintf(w, "(%d bytes of output were dropped while the question waited)\n", b.dropped)
	}
	_, _ = w.Write(b.content)
	*b = backlog{}
}

func (p *promptOutput) Write(content []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking {
		p.held.add(content)
		return len(content), nil
	}
	return p.w.Write(content)
}

// ask prints a question and returns the answer, in lower case and trimmed. It returns ctx's error if ctx ends first; a
// read of in may then continue.
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

// end ends the question and writes the buffered output.
func (p *promptOutput) end(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	p.held.flush(p.w)
	return err
}
