package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
)

// KeyKind is an algorithm with a key size, such as "RSA 2048" or "ECDSA P-256".
type KeyKind string

// The kinds of keys that EKCO creates.
const (
	RSA2048   KeyKind = "RSA 2048"
	RSA3072   KeyKind = "RSA 3072"
	RSA4096   KeyKind = "RSA 4096"
	ECDSAP256 KeyKind = "ECDSA P-256"
)

// KindOf returns the kind of a public key.
func KindOf(public crypto.PublicKey) KeyKind {
	switch key := public.(type) {
	case *rsa.PublicKey:
		return KeyKind(fmt.Sprintf("RSA %d", key.N.BitLen()))
	case *ecdsa.PublicKey:
		return KeyKind("ECDSA " + key.Params().Name)
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return KeyKind(fmt.Sprintf("unknown (%T)", public))
}

// NewKey creates a key of the kind. It returns an error for a kind that is not one of the constants.
func NewKey(kind KeyKind) (crypto.Signer, error) {
	switch kind {
	case RSA2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case RSA3072:
		return rsa.GenerateKey(rand.Reader, 3072)
	case RSA4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	case ECDSAP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	return nil, fmt.Errorf("create a key: EKCO supports RSA 2048, 3072 and 4096 and ECDSA P-256, not %s", kind)
}
