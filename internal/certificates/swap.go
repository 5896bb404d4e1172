package certificates

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// replacement is new content of a file that is written beside it, and not yet in its place.
type replacement struct {
	path, beside string
	before       []byte
}

// prepare writes the content beside the file, with its mode and owner.
func prepare(path string, content []byte) (r replacement, err error) {
	old, err := ReadFile(path)
	if err != nil {
		return r, err
	}
	r = replacement{path, filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".ekco"), old.Content}
	if err := writeLike(path, r.beside, content); err != nil {
		return r, errors.Join(err, r.discard())
	}
	return r, nil
}

// writeLike writes a new file with the mode and the owner of another one. What an earlier try
// left in its place goes.
func writeLike(like, path string, content []byte) error {
	info, err := os.Stat(like)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(info.Mode().Perm())
	}
	if owner, known := info.Sys().(*syscall.Stat_t); known && err == nil {
		err = file.Chown(int(owner.Uid), int(owner.Gid))
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// rename is os.Rename but in tests.
type rename func(from, to string) error

// swap puts it into its place, where it is at once or not at all.
func (r replacement) swap(by rename) error {
	if err := by(r.beside, r.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(r.path))
}

// restore puts back what was there before.
func (r replacement) restore(by rename) error {
	if err := writeLike(r.path, r.beside, r.before); err != nil {
		return err
	}
	return r.swap(by)
}

func (r replacement) discard() error {
	if err := os.Remove(r.beside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// swapPair replaces a certificate and its key. Who reads both in between sees two that do not
// belong together, and keeps what it had: the API server tries again when the second changes.
// The certificate is last, so that what was interrupted shows that it is the old one.
func swapPair(by rename, certificatePath string, certificate []byte, keyPath string, key []byte) error {
	ofKey, err := prepare(keyPath, key)
	if err != nil {
		return err
	}
	ofCertificate, err := prepare(certificatePath, certificate)
	if err != nil {
		return errors.Join(err, ofKey.discard())
	}
	if err := ofKey.swap(by); err != nil {
		return errors.Join(fmt.Errorf("replace %s: %w", keyPath, err), ofKey.discard(), ofCertificate.discard())
	}
	if err := ofCertificate.swap(by); err != nil {
		return errors.Join(fmt.Errorf("replace %s: %w", certificatePath, err), ofCertificate.discard(), ofKey.restore(by))
	}
	return nil
}
