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

// pen writes for several, such as a log and a command. While a question waits
// for its answer it keeps what others write.
type pen struct {
	w io.Writer

	mu     sync.Mutex
	asking bool
	kept   tail
}

// mostKept is how many of the bytes are shown that were written while a question
// waited: the person may have gone home.
const mostKept = 256 << 10

// tail keeps the end of what is written to it.
type tail struct {
	content []byte
	left    int // bytes left out
}

// add keeps at most twice as much as is shown, so that not every write moves
// all of it.
func (t *tail) add(content []byte) {
	t.content = append(t.content, content...)
	if len(t.content) > 2*mostKept {
		t.trim()
	}
}

// trim leaves out what is too much, in whole lines if there are any.
func (t *tail) trim() {
	cut := len(t.content) - mostKept
	if cut <= 0 {
		return
	}
	if end := bytes.IndexByte(t.content[cut-1:], '\n'); end >= 0 && cut+end < len(t.content) {
		cut += end
	}
	t.left += cut
	t.content = bytes.Clone(t.content[cut:])
}

// flush writes what was kept, and begins anew. That nobody reads it is no
// failure.
func (t *tail) flush(w io.Writer) {
	t.trim()
	if t.left > 0 {
		_, _ = fmt.Fprintf(w, "(%d bytes that were written while the question waited are left out)\n", t.left)
	}
	_, _ = w.Write(t.content)
	*t = tail{}
}

// Write implements io.Writer.
func (p *pen) Write(content []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking {
		p.kept.add(content)
		return len(content), nil
	}
	return p.w.Write(content)
}

// ask puts a question and returns the line that answers it, in lower case and
// without blanks around it. It returns ctx's error when that ends first; a read
// of in may go on then.
func (p *pen) ask(ctx context.Context, in io.Reader, question string) (string, error) {
	if err := p.begin(question); err != nil {
		return "", err
	}
	answers := make(chan answered[string], 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if line != "" {
			err = nil
		}
		answers <- answered[string]{strings.ToLower(strings.TrimSpace(line)), err}
	}()
	select {
	case a := <-answers:
		return a.value, p.end(a.err)
	case <-ctx.Done():
		_, _ = fmt.Fprintln(p.w)
		return "", p.end(ctx.Err())
	}
}

func (p *pen) begin(question string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.w, question); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	p.asking = true
	return nil
}

// end writes what was kept meanwhile.
func (p *pen) end(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	p.kept.flush(p.w)
	return err
}
