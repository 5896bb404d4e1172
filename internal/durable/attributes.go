package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes are a file's mode, owner and extended attributes.
type attributes struct {
	mode     fs.FileMode
	uid, gid int
	extended map[string][]byte
}

// withMode returns the attributes of a new file, whose owner is the program's user.
func withMode(mode fs.FileMode) attributes { return attributes{mode: mode, uid: -1, gid: -1} }

// attributesOf reads the attributes of a file, including access lists and SELinux labels.
func attributesOf(path string) (attributes, error) {
	info, err := os.Stat(path)
	if err != nil {
		return attributes{}, err
	}
	a := withMode(info.Mode().Perm())
	if owner, known := info.Sys().(*syscall.Stat_t); known {
		a.uid, a.gid = int(owner.Uid), int(owner.Gid)
	}
	a.extended, err = extendedOf(path)
	return a, err
}

// give sets the attributes on a file that is being written. It sets the group before the mode, because the mode may let
// the group read. It sets the owner last: a program whose only capability is CHOWN can change nothing else of another
// user's file.
func (a attributes) give(file *os.File) error {
	if err := file.Chown(-1, a.gid); err != nil {
		return err
	}
	if err := a.giveExtended(file); err != nil {
		return err
	}
	if err := file.Chmod(a.mode); err != nil {
		return err
	}
	return file.Chown(a.uid, -1)
}

func (a attributes) giveExtended(file *os.File) error {
	has, err := extendedOf(file.Name())
	if err != nil {
		return err
	}
	for name, value := range a.extended {
		there, set := has[name]
		if set && bytes.Equal(there, value) {
			continue // the directory gave the file this label; setting it again may be forbidden
		}
		err := unix.Fsetxattr(int(file.Fd()), name, value, 0)
		if errors.Is(err, unix.EPERM) && !set && strings.HasPrefix(name, "security.") {
			continue // the kernel gave the new file no label, so it does not enforce labels
		}
		if err != nil {
			return fmt.Errorf("set %s of %s: %w", name, file.Name(), err)
		}
	}
	return nil
}

// madeOfContent are attributes that the kernel computes from a file's content and other attributes. A new file with
// those of the old file could not be read.
var madeOfContent = []string{"security.ima", "security.evm"}

// extendedOf reads a file's extended attributes, except [madeOfContent]; none if the file system has no
// such attributes.
func extendedOf(path string) (map[string][]byte, error) {
	names, err := grown(func(buffer []byte) (int, error) { return unix.Listxattr(path, buffer) })
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "list the attributes of", Path: path, Err: err}
	}
	all := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if name == "" || slices.Contains(madeOfContent, name) {
			continue
		}
		value, err := grown(func(buffer []byte) (int, error) { return unix.Getxattr(path, name, buffer) })
		if errors.Is(err, unix.ENODATA) {
			continue // the attribute was just removed
		}
		if err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", name, path, err)
		}
		all[name] = value
	}
	return all, nil
}

// grown calls ask with a larger buffer until the answer fits.
func grown(ask func([]byte) (int, error)) ([]byte, error) {
	for room := 1 << 10; ; room *= 4 {
		buffer := make([]byte, room)
		n, err := ask(buffer)
		if err == nil {
			return buffer[:n], nil
		}
		if !errors.Is(err, unix.ERANGE) || room > 1<<20 {
			return nil, err
		}
	}
}
