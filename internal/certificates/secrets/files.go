package secrets

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Files returns the paths of the CAs, relative to the directory of the cluster's certificates. EKCO does not renew CAs. All
// primaries have the same CAs.
func Files() []string { return []string{"ca.crt", "etcd/ca.crt", "front-proxy-ca.crt"} }

// ReadCA returns the facts of a CA in a file. It returns kube.ErrNotFound if the file does not exist.
func ReadCA(_ context.Context, dir, path string, now time.Time) (journal.CertificateFacts, error) {
	facts := journal.CertificateFacts{Version: journal.CertificateFactsVersion, Unrenewed: "EKCO does not renew CAs"}
	bundle, err := readBundle(filepath.Join(dir, filepath.FromSlash(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return facts, fmt.Errorf("%w: %w", err, kube.ErrNotFound)
	}
	if err != nil {
		facts.Unreadable = err.Error()
	}
	for _, certificate := range bundle {
		facts.Certificates = append(facts.Certificates, certificates.Facts(filepath.Join(dir, filepath.FromSlash(path)), certificate))
	}
	if len(bundle) > 0 {
		facts.Within = journal.ExpiryWarningFor(facts.Ends(), now)
	}
	return facts, nil
}

func readBundle(path string) ([]*x509.Certificate, error) {
	file, err := certificates.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return file.Bundle()
}
