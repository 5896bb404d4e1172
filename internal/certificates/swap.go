package certificates

import (
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/internal/durable"
)

// replacement is a file's new content, beside it, and what was there before.
type replacement struct {
	durable.Replacement
	before []byte
}

// prepare writes the content beside the file.
func prepare(path string, content []byte) (replacement, error) {
	old, err := ReadFile(path)
	if err != nil {
		return replacement{}, err
	}
	r, err := durable.Prepare(path, content)
	return replacement{r, old.Content}, err
}

// swap puts a file into its place: durable.Replacement.Swap but in tests.
type swap func(durable.Replacement) error

// restore puts back what was there before.
func (r replacement) restore(by swap) error {
	before, err := durable.Prepare(r.Path, r.before)
	if err != nil {
		return err
	}
	return by(before)
}

// swapPair replaces a certificate and its key. Who reads both in between sees two that do not
// belong together, and keeps what it had: the API server tries again when the second changes.
// The certificate is last, so that what was interrupted shows that it is the old one. Who calls it has
// the directory's lock.
func swapPair(by swap, certificatePath string, certificate []byte, keyPath string, key []byte) error {
	ofKey, err := prepare(keyPath, key)
	if err != nil {
		return err
	}
	ofCertificate, err := prepare(certificatePath, certificate)
	if err != nil {
		return errors.Join(err, ofKey.Discard())
	}
	if err := by(ofKey.Replacement); err != nil {
		return errors.Join(fmt.Errorf("replace %s: %w", keyPath, err), ofKey.Discard(), ofCertificate.Discard())
	}
	if err := by(ofCertificate.Replacement); err != nil {
		return errors.Join(fmt.Errorf("replace %s: %w", certificatePath, err), ofCertificate.Discard(), ofKey.restore(by))
	}
	return nil
}
