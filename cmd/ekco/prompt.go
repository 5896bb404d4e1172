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

// promptOutput is output for several, such as a log and a command, with a prompt.
// While a question waits for its answer it keeps what others write.
type promptOutput struct {
	w io.Writer

	mu     sync.Mutex
	asking bool
	held   backlog
}

// mostHeld is how many of the bytes are shown that were written while a question
// waited: the person may have gone home.
const mostHeld = 256 << 10

// backlog keeps the end of what is written to it.
type backlog struct {
	content []byte
	left    int // bytes left out
}

// add keeps at most twice as much as is shown, so that not every write moves
// all of it.
func (b *backlog) add(content []byte) {
	b.content = append(b.content, content...)
	if len(b.content) > 2*mostHeld {
		b.trim()
	}
}

// trim leaves out what is too much, in whole lines if there are any.
func (b *backlog) trim() {
	cut := len(b.content) - mostHeld
	if cut <= 0 {
		return
	}
	if end := bytes.IndexByte(b.content[cut-1:], '\n'); end >= 0 && cut+end < len(b.content) {
		cut += end
	}
	b.left += cut
	b.content = bytes.Clone(b.content[cut:])
}

// flush writes what was kept, and begins anew. That nobody reads it is no
// failure.
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

// ask puts a question and returns the line that answers it, in lower case and
// without blanks around it. It returns ctx's error when that ends first; a read
// of in may go on then.
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

// end writes what was kept meanwhile.
func (p *promptOutput) end(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	p.held.flush(p.w)
	return err
}
