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
	kept   bytes.Buffer
}

// Write implements io.Writer.
func (p *pen) Write(content []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking {
		return p.kept.Write(content)
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

// end writes what was kept meanwhile. That nobody reads it is no failure.
func (p *pen) end(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = false
	_, _ = p.kept.WriteTo(p.w)
	return err
}
