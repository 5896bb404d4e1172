package certificates

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// File is content with a name for errors. The name is a path, or the name of a Secret and a key in it.
type File struct {
	Name    string
	Content []byte
}

// ErrEncrypted is the error if EKCO would need a passphrase to read a key.
var ErrEncrypted = errors.New("it is encrypted; EKCO has no passphrase")

const (
	blockCertificate = "CERTIFICATE"
	blockRSA         = "RSA PRIVATE KEY"
	blockEC          = "EC PRIVATE KEY"
	blockPKCS8       = "PRIVATE KEY"
	blockEncrypted   = "ENCRYPTED PRIVATE KEY"
	// blockParameters is a block that openssl writes before an EC key.
	blockParameters = "EC PARAMETERS"
)

// fail returns an error about the file.
func (f File) fail(format string, args ...any) error {
	return fmt.Errorf("read %s: %w", f.Name, fmt.Errorf(format, args...))
}

// blocks splits the content into PEM blocks. It allows text before the first block, because openssl writes such text.
// It returns an error for other text, because that may be a damaged block.
func (f File) blocks() ([]*pem.Block, error) {
	if len(bytes.TrimSpace(f.Content)) == 0 {
		return nil, f.fail("it is empty")
	}
	var blocks []*pem.Block
	rest := f.Content
	for {
		before := rest
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if skipped := before[:len(before)-len(after)]; bytes.Count(skipped, []byte("-----BEGIN")) > 1 {
			return nil, f.fail("the PEM block before block %d cannot be read", len(blocks)+1)
		}
		blocks, rest = append(blocks, block), after
	}
	switch rest = bytes.TrimSpace(rest); {
	case len(blocks) == 0:
		return nil, f.fail("it has no PEM block")
	case len(rest) > 0:
		return nil, f.fail("after PEM block %d there are %d bytes that are not PEM", len(blocks), len(rest))
	}
	return blocks, nil
}

// Bundle parses one or more certificates, which may be unrelated.
func (f File) Bundle() ([]*x509.Certificate, error) {
	blocks, err := f.blocks()
	if err != nil {
		return nil, err
	}
	var bundle []*x509.Certificate
	for i, block := range blocks {
		if block.Type != blockCertificate {
			return nil, f.fail("PEM block %d is a %s, want a %s", i+1, typeOf(block), blockCertificate)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, f.fail("PEM block %d is not a certificate: %w", i+1, err)
		}
		bundle = append(bundle, certificate)
	}
	return bundle, nil
}

// Chain parses one or more certificates. Each certificate must be signed by the next.
func (f File) Chain() ([]*x509.Certificate, error) {
	chain, err := f.Bundle()
	if err != nil {
		return nil, err
	}
	for i, certificate := range chain[1:] {
		if !bytes.Equal(chain[i].RawIssuer, certificate.RawSubject) {
			return nil, f.fail("certificate %d (%s) did not sign certificate %d (%s); they are in the wrong order, or do not belong together",
				i+2, Called(certificate), i+1, Called(chain[i]))
		}
	}
	return chain, nil
}

// LegibleCertificates returns the first certificates of a file, up to the number most. It skips all other content, and
// ignores the order. Use it only for display, not to decide what to write.
func (f File) LegibleCertificates(most int) (found []*x509.Certificate) {
	for rest := f.Content; len(found) < most; {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			found = append(found, certificate)
		}
		rest = after
	}
	return found
}

// OneCertificate parses a file with exactly one certificate.
func (f File) OneCertificate() (*x509.Certificate, error) {
	chain, err := f.Chain()
	switch {
	case err != nil:
		return nil, err
	case len(chain) > 1:
		return nil, f.fail("it has %d certificates, want one", len(chain))
	}
	return chain[0], nil
}

// Key parses a file with exactly one private key: PKCS #1, PKCS #8 or SEC 1.
func (f File) Key() (crypto.Signer, error) {
	blocks, err := f.blocks()
	if err != nil {
		return nil, err
	}
	if len(blocks) > 1 && blocks[0].Type == blockParameters {
		blocks = blocks[1:]
	}
	if len(blocks) > 1 {
		return nil, f.fail("it has %d PEM blocks, want one private key", len(blocks))
	}
	key, err := parseKey(blocks[0])
	if err != nil {
		return nil, f.fail("PEM block 1: %w", err)
	}
	return key, nil
}

// parseKey parses a key. It drops the errors of the parsers, because they might quote the key.
func parseKey(block *pem.Block) (crypto.Signer, error) {
	if block.Type == blockEncrypted || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
		return nil, ErrEncrypted
	}
	var key any
	var err error
	switch block.Type {
	case blockRSA:
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case blockEC:
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case blockPKCS8:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("it is a %s, want a private key", typeOf(block))
	}
	if err != nil {
		return nil, fmt.Errorf("its type is %s, but its content has another type", typeOf(block))
	}
	signer, is := key.(crypto.Signer)
	if !is {
		return nil, errors.New("its key cannot sign")
	}
	return signer, nil
}

// maxType limits the part of a block's type that errors quote, in bytes.
const maxType = 40

func typeOf(block *pem.Block) string {
	if len(block.Type) > maxType {
		return fmt.Sprintf("%q…", block.Type[:maxType])
	}
	return block.Type
}

// CheckKey returns an error with the names of both files unless the key belongs to the certificate.
func CheckKey(certificate *x509.Certificate, of File, key crypto.Signer, from File) error {
	public, comparable := key.Public().(interface{ Equal(x crypto.PublicKey) bool })
	if !comparable || !public.Equal(certificate.PublicKey) {
		return fmt.Errorf("%s is not the key of %s (%s)", from.Name, of.Name, Called(certificate))
	}
	return nil
}

// Pair parses a chain and the key of its first certificate.
func Pair(certificate, key File) ([]*x509.Certificate, crypto.Signer, error) {
	chain, err := certificate.Chain()
	if err != nil {
		return nil, nil, err
	}
	signer, err := key.Key()
	if err != nil {
		return nil, nil, err
	}
	return chain, signer, CheckKey(chain[0], certificate, signer, key)
}

// EncodeChain writes certificates as PEM.
func EncodeChain(chain ...*x509.Certificate) []byte {
	var out []byte
	for _, certificate := range chain {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: certificate.Raw})...)
	}
	return out
}

// EncodeKey writes a key as PEM, in the traditional format of kubeadm and openssl.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return pem.EncodeToMemory(&pem.Block{Type: blockRSA, Bytes: x509.MarshalPKCS1PrivateKey(k)}), nil
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			return nil, fmt.Errorf("encode a key: %w", err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: blockEC, Bytes: der}), nil
	case ed25519.PrivateKey:
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			return nil, fmt.Errorf("encode a key: %w", err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: blockPKCS8, Bytes: der}), nil
	}
	return nil, fmt.Errorf("encode a key: EKCO does not support keys of type %T", key)
}
