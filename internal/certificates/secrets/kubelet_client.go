package secrets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/journal"
)

// Client is the client certificate with which API servers authenticate to kubelets, its key and the CAs, from a
// primary's files.
type Client struct {
	Certificate, Key certificates.File
	CAs              []*x509.Certificate
}

// ReadClient reads the client certificate from the directory of the cluster's certificates, with kubeadm's file names.
func ReadClient(dir string) (Client, error) {
	var client Client
	var err error
	if client.CAs, err = readBundle(filepath.Join(dir, "ca.crt")); err != nil {
		return Client{}, err
	}
	if client.Certificate, err = certificates.ReadFile(filepath.Join(dir, "apiserver-kubelet-client.crt")); err != nil {
		return Client{}, err
	}
	client.Key, err = certificates.ReadFile(filepath.Join(dir, "apiserver-kubelet-client.key"))
	return client, err
}

// pair reads both files, which must belong together.
func (c Client) pair() (leaf *x509.Certificate, pair tls.Certificate, err error) {
	chain, key, err := certificates.Pair(c.Certificate, c.Key)
	if err != nil {
		return nil, tls.Certificate{}, err
	}
	return chain[0], tlsPair(chain, key), nil
}

// kubeletClient is a Secret with a copy of that pair, with which KOTS authenticates to kubelets. EKCO copies the pair
// of the primary on which it runs, if that pair is better than the copy and a kubelet accepts it.
type kubeletClient struct{ options Options }

func (k kubeletClient) secrets() []secretOf {
	return []secretOf{{ref: k.options.KubeletClient, certificate: "client.crt", key: "client.key", most: 1}}
}

func (kubeletClient) foreign([]stored) bool         { return false }
func (kubeletClient) inconsistency([]stored) string { return "" }

func (k kubeletClient) original(held []stored) (*journal.CertificateOriginal, error) {
	client, err := k.options.Client()
	if err != nil {
		return nil, err
	}
	leaf, _, err := client.pair()
	if err != nil {
		return nil, err
	}
	return &journal.CertificateOriginal{
		Fingerprint: certificates.Fingerprint(leaf), NotAfter: leaf.NotAfter.UTC(), Signed: signed(leaf, client.CAs), CopySigned: signed(held[0].chain[0], client.CAs),
	}, nil
}

func signed(certificate *x509.Certificate, by []*x509.Certificate) bool {
	return slices.ContainsFunc(by, func(ca *x509.Certificate) bool { return certificates.SignedBy(certificate, ca) })
}

// ready returns an error unless a kubelet accepts the pair: the primary may soon replace a pair that no kubelet accepts
// by its old one.
func (k kubeletClient) ready(ctx context.Context, _ []stored, _ time.Time) error {
	client, err := k.options.Client()
	if err != nil {
		return err
	}
	_, pair, err := client.pair()
	if err != nil {
		return err
	}
	if err := k.options.Accepts(ctx, pair); err != nil {
		return fmt.Errorf("copy %s: %w", client.Certificate.Name, err)
	}
	return nil
}

// renew copies the files. It reads each file only once, so that certificate and key belong together.
func (k kubeletClient) renew(held []stored, _ certificates.Renewal) error {
	client, err := k.options.Client()
	if err != nil {
		return err
	}
	if _, _, err := client.pair(); err != nil {
		return err
	}
	held[0].secret.set(held[0].of.certificate, client.Certificate.Content)
	held[0].secret.set(held[0].of.key, client.Key.Content)
	return nil
}

func (k kubeletClient) servers() servers {
	return servers{what: "kubelets", accepts: k.options.Accepts}
}

// client returns the pair in the Secret.
func (h *stored) client() (tls.Certificate, error) {
	chain, key, err := certificates.Pair(h.secret.file(h.of.certificate), h.secret.file(h.of.key))
	if err != nil {
		return tls.Certificate{}, err
	}
	return tlsPair(chain, key), nil
}
