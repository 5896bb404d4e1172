package certificates

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"math/bits"
	"strings"

	"github.com/replicatedhq/ekco/journal"
)

// maxNames and maxName limit the facts of a certificate, because any program may have created it.
const (
	maxNames = 50
	maxName  = 253
)

// Called returns a name of the certificate for messages: its common name, or else its whole subject.
func Called(certificate *x509.Certificate) string {
	name := certificate.Subject.CommonName
	if name == "" {
		name = certificate.Subject.String()
	}
	if name == "" {
		name = "without a subject"
	}
	return short(name)
}

// short limits the length of a text. It removes invalid UTF-8, which JSON would replace by another character.
func short(text string) string {
	if len(text) > maxName {
		return strings.ToValidUTF8(text[:maxName], "") + "…"
	}
	return strings.ToValidUTF8(text, "")
}

// Facts returns the public facts of a certificate. at is its location, such as a path.
func Facts(at string, certificate *x509.Certificate) journal.Certificate {
	facts := journal.Certificate{
		At: at, Subject: short(certificate.Subject.String()), Issuer: short(certificate.Issuer.String()),
		Usages: usages(certificate), Key: string(KindOf(certificate.PublicKey)), Serial: serial(certificate),
		NotBefore: certificate.NotBefore.UTC(), NotAfter: certificate.NotAfter.UTC(), CA: certificate.IsCA,
		Fingerprint: Fingerprint(certificate),
	}
	names := Names(certificate)
	for _, name := range names[:min(len(names), maxNames)] {
		facts.Names = append(facts.Names, short(name))
	}
	facts.MoreNames = max(0, len(names)-maxNames)
	return facts
}

func serial(certificate *x509.Certificate) string {
	if certificate.SerialNumber == nil {
		return ""
	}
	return short(certificate.SerialNumber.Text(16))
}

// Fingerprint returns the SHA-256 of a certificate.
func Fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// Names returns all alternative names: DNS names, addresses, e-mail addresses and URIs.
func Names(certificate *x509.Certificate) []string {
	names := append([]string{}, certificate.DNSNames...)
	for _, ip := range certificate.IPAddresses {
		names = append(names, ip.String())
	}
	names = append(names, certificate.EmailAddresses...)
	for _, uri := range certificate.URIs {
		names = append(names, uri.String())
	}
	return names
}

var keyUsages = []string{
	"digital signature", "content commitment", "key encipherment", "data encipherment", "key agreement",
	"certificate sign", "CRL sign", "encipher only", "decipher only",
}

var extendedUsages = map[x509.ExtKeyUsage]string{
	x509.ExtKeyUsageAny: "any", x509.ExtKeyUsageServerAuth: "server auth", x509.ExtKeyUsageClientAuth: "client auth",
	x509.ExtKeyUsageCodeSigning: "code signing", x509.ExtKeyUsageEmailProtection: "e-mail protection",
	x509.ExtKeyUsageTimeStamping: "time stamping", x509.ExtKeyUsageOCSPSigning: "OCSP signing",
}

// usages returns the names of the certificate's key usages.
func usages(certificate *x509.Certificate) (names []string) {
	for left := uint(certificate.KeyUsage); left != 0; left &= left - 1 {
		if i := bits.TrailingZeros(left); i < len(keyUsages) {
			names = append(names, keyUsages[i])
		}
	}
	for _, usage := range certificate.ExtKeyUsage {
		name, known := extendedUsages[usage]
		if !known {
			name = fmt.Sprintf("extended usage %d", usage)
		}
		names = append(names, name)
	}
	for _, id := range certificate.UnknownExtKeyUsage {
		names = append(names, short(id.String()))
	}
	return names
}
