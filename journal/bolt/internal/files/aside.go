package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// AsideTime is the layout of the time in the name of a renamed file.
const AsideTime = "20060102T150405Z"

// AsideName returns a name that no existing file has: prefix, the time, and a number if necessary.
func AsideName(prefix string, now time.Time) (string, error) {
	return FreeName(prefix+now.UTC().Format(AsideTime), "-", "")
}

// FreeName returns a name that no existing file has: begin+end or, if that exists, begin+separator+number+end.
func FreeName(begin, separator, end string) (string, error) {
	for name, n := begin+end, 2; ; name, n = fmt.Sprintf("%s%s%d%s", begin, separator, n, end), n+1 {
		_, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// ListSetAside returns the existing files with a name that begins with prefix, the oldest first. prefix is the prefix
// that was given to [AsideName].
func ListSetAside(prefix string) ([]string, error) {
	directory, base := filepath.Split(prefix)
	entries, err := os.ReadDir(filepath.Clean(directory))
	if err != nil {
		return nil, fmt.Errorf("list the files that were renamed earlier: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), base) {
			names = append(names, directory+entry.Name())
		}
	}
	return names, nil
}

// SetAside gives the file a second name, and syncs the directory. The file then has a name even while it is replaced at
// path. If the file system does not support hard links, SetAside copies the file.
func SetAside(path, aside string) error {
	if os.Link(path, aside) == nil {
		return SyncDirectory(filepath.Dir(aside))
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close(), SyncDirectory(filepath.Dir(aside)))
}
