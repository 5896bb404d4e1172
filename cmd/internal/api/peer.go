package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// peer is the process at the other end of a connection, as the kernel reports it.
type peer struct {
	uid uint32
	pid int32
	err error
}

type peerKey struct{}

// withPeer is the ConnContext function of an http.Server. It adds the peer to the context.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, peerOf(conn))
}

func peerOf(conn net.Conn) peer {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return peer{err: fmt.Errorf("connection is a %T, not a unix socket", conn)}
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return peer{err: err}
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return peer{err: err}
	}
	return peer{uid: cred.Uid, pid: cred.Pid}
}

// requireAllowed returns an error unless the process at the other end is of root or of this process's user.
func (p peer) requireAllowed() error {
	switch {
	case p.err != nil:
		return fmt.Errorf("identify the process at the other end of the socket: %w: %w", p.err, ErrForbidden)
	case p.uid != 0 && int(p.uid) != os.Geteuid():
		return fmt.Errorf("user %s: %w", userName(p.uid), ErrForbidden)
	}
	return nil
}

// actor returns the name to record with the peer's requests: the user that the kernel reports, and the sudo user that
// the client claims.
func (p peer) actor(host, sudoUser string) string {
	actor := "cli:" + userName(p.uid) + "@" + host
	if sudoUser = plainName(sudoUser); sudoUser != "" {
		actor += " (sudo by " + sudoUser + ")"
	}
	return actor
}

// LocalActor returns the name to record with requests of this process.
func LocalActor() string {
	return peer{uid: uint32(os.Geteuid())}.actor(hostName(), os.Getenv("SUDO_USER"))
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if found, err := user.LookupId(id); err == nil {
		if name := plainName(found.Username); name != "" {
			return name
		}
	}
	return "uid" + id
}

// plainName keeps at most 32 characters, and only characters of user names.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-$@", r):
			return r
		}
		return -1
	}, name)
	return name[:min(32, len(name))]
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown-host"
	}
	return name
}
