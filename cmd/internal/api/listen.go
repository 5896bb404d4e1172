package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is Linux's limit of the length of a socket's path.
const maxSocketPath = 107

// ErrSocketInUse is returned by [Listen] if another process listens on the socket.
var ErrSocketInUse = errors.New("socket is in use")

// Listen creates the socket, which only its owner can use. It replaces a socket on which no process listens. It returns
// ErrSocketInUse if a process listens, and never changes the directory or a file that is not a socket. Closing the
// listener removes the socket.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on socket %s: the path has %d bytes and may have %d; set journal to a shorter path",
			path, len(path), maxSocketPath)
	}
	if err := requireFree(ctx, path); err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	// Create the socket under another name, so that it has its final mode before a client can find it.
	draft := filepath.Join(filepath.Dir(path), "."+strconv.Itoa(os.Getpid())+".sock")
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	inner, err := (&net.ListenConfig{}).Listen(ctx, "unix", draft)
	if err != nil {
		return nil, fmt.Errorf("listen on socket %s: %w", path, err)
	}
	listener := &socketListener{Listener: inner, path: path}
	if unixListener, ok := inner.(*net.UnixListener); ok {
		unixListener.SetUnlinkOnClose(false)
	}
	if err := listener.publish(draft); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on socket %s: %w", path, err), inner.Close(), os.Remove(draft))
	}
	return listener, nil
}

// requireFree returns an error unless path may be replaced.
func requireFree(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("there is a file that is not a socket (%s); move it elsewhere", info.Mode())
	}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("another process serves it: %w", ErrSocketInUse)
	}
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("cannot tell whether another process serves it: %w", err)
}

// socketListener removes only its own socket when it is closed.
type socketListener struct {
	net.Listener
	path string
	made os.FileInfo
}

func (l *socketListener) publish(draft string) error {
	if err := os.Chmod(draft, 0o600); err != nil {
		return err
	}
	made, err := os.Lstat(draft)
	if err != nil {
		return err
	}
	l.made = made
	return os.Rename(draft, l.path)
}

// Close stops listening.
func (l *socketListener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
		_ = os.Remove(l.path)
	}
	return l.Listener.Close()
}
