package execserver

import (
	"fmt"
	"os"
	"os/exec"
)

// pipes are this process's ends of a program's standard streams. The copying of exec.Cmd is unsuitable, because it
// waits for the end of the input, which a client need not send.
type pipes struct {
	stdin, stdout, stderr *os.File // nil if the client does not want the stream
	child                 []*os.File
}

// connect gives cmd a pipe for each wanted stream.
func (p *pipes) connect(cmd *exec.Cmd, s streams) error {
	if s.stdin != nil {
		reader, err := p.pipe(&p.stdin, nil)
		if err != nil {
			return err
		}
		cmd.Stdin = reader
	}
	if s.stdout != nil {
		writer, err := p.pipe(nil, &p.stdout)
		if err != nil {
			return err
		}
		cmd.Stdout = writer
	}
	if s.stderr != nil {
		writer, err := p.pipe(nil, &p.stderr)
		if err != nil {
			return err
		}
		cmd.Stderr = writer
	}
	return nil
}

// pipe creates a pipe, stores one end in the non-nil argument, and returns the other.
func (p *pipes) pipe(writer, reader **os.File) (child *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe to the exec handler: %w", err)
	}
	if writer != nil {
		*writer, child = w, r
	} else {
		*reader, child = r, w
	}
	p.child = append(p.child, child)
	return child, nil
}

func (p *pipes) closeChildEnds() {
	for _, f := range p.child {
		_ = f.Close()
	}
	p.child = nil
}

// close unblocks readers and writers of a pipe that a runaway child has open.
func (p *pipes) close() {
	p.closeChildEnds()
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close() // the copying goroutine may have closed it
		}
	}
}
