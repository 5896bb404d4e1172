package certificates

import (
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/internal/durable"
)

// replacement is a file's new content, which is written next to the file, and its old content.
type replacement struct {
	durable.Replacement
	before []byte
}

// prepare writes the content next to the file.
func prepare(path string, content []byte) (replacement, error) {
	old, err := ReadFile(path)
	if err != nil {
		return replacement{}, err
	}
	r, err := durable.Prepare(path, content)
	return replacement{r, old.Content}, err
}

// swap is the type of durable.Replacement.Swap. Tests use another function.
type swap func(durable.Replacement) error

// restore writes the old content again.
func (r replacement) restore(by swap) error {
	before, err := durable.Prepare(r.Path, r.before)
	if err != nil {
		return err
	}
	return by(before)
}

// swapPair replaces a key and then its certificate. If the API server reads the files in between, the pair does not
// match: it keeps the old pair and tries again when the second file changes. After an interruption, the old certificate
// shows that the change is not complete. The caller must hold the directory's lock.
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
