package primary_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
)

// ca of an item, as a file.
func caOf(item string) string {
	switch {
	case strings.Contains(item, "etcd"):
		return "pki/etcd/ca.crt"
	case strings.Contains(item, "front-proxy"):
		return "pki/front-proxy-ca.crt"
	}
	return "pki/ca.crt"
}

// TestOpenSSLFindsTheNewOnesInOrder has openssl read all that is new, RSA keys and all, with no help of
// Go's: certificates, keys, chains, and all that is said of the certificates but what is to be
// another.
func TestOpenSSLFindsTheNewOnesInOrder(t *testing.T) {
	for _, kind := range []certificates.KeyKind{certificates.RSA2048, certificates.ECDSAP256} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorldOf(t, 5*day, kind, fewKeys())
				before := w.described()
				w.rotate()
				w.clean()
				if text := before["pki/apiserver"]; !strings.Contains(text, "DNS:kubernetes.default.svc") || !strings.Contains(text, "Issuer: CN = kubernetes") {
					t.Errorf("compared is %s", text)
				}
				if diff := cmp.Diff(before, w.described()); diff != "" {
					t.Errorf("more is another (-old +new):\n%s", diff)
				}
				for _, item := range primarytest.Items() {
					w.judged(item)
				}
			})
		})
	}
}

// fewKeys gives out four new keys of each kind in turn: to make one of RSA takes long.
func fewKeys() func(certificates.KeyKind) (crypto.Signer, error) {
	made, given := map[certificates.KeyKind][]crypto.Signer{}, map[certificates.KeyKind]int{}
	return func(kind certificates.KeyKind) (crypto.Signer, error) {
		if len(made[kind]) < 4 {
			key, err := certificates.NewKey(kind)
			if err != nil {
				return nil, err
			}
			made[kind] = append(made[kind], key)
		}
		given[kind]++
		return made[kind][(given[kind]-1)%4], nil
	}
}

func openssl(t testing.TB, input []byte, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "openssl", args...)
	command.Stdin = bytes.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("openssl %s: %v: %s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// judged has openssl verify the chain, and compare the certificate with its key.
func (w *world) judged(item string) {
	w.t.Helper()
	certificate, key := w.Pair(item)
	at := w.Leaf(item).NotBefore.Unix()
	for purpose, mark := range map[string]string{"sslserver": "TLS Web Server", "sslclient": "TLS Web Client"} {
		if !strings.Contains(openssl(w.t, certificate, "x509", "-noout", "-text"), mark) {
			continue
		}
		said := openssl(w.t, certificate, "verify", "-x509_strict", "-purpose", purpose, "-attime", strconv.FormatInt(at+600, 10), "-CAfile", filepath.Join(w.dir(), caOf(item)))
		if !strings.Contains(said, "stdin: OK") {
			w.t.Errorf("%s: openssl verify says %s", item, said)
		}
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.Read(caOf(item)))
	for _, usage := range w.Leaf(item).ExtKeyUsage {
		if _, err := w.Leaf(item).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: time.Now()}); err != nil {
			w.t.Errorf("%s: %v", item, err)
		}
	}
	ofCertificate := openssl(w.t, certificate, "x509", "-noout", "-pubkey")
	if ofKey := openssl(w.t, key, "pkey", "-pubout"); ofKey != ofCertificate {
		w.t.Errorf("%s: openssl finds another key", item)
	}
}

// another is what is to be another of a renewed certificate: serial number, validity, key, its
// identifier, and signature.
var another = regexp.MustCompile(`(?s)Serial Number:.*?\n +Signature Algorithm|Validity\n.*?Subject:|Modulus:.*?Exponent|pub:.*?ASN1|X509v3 Subject Key Identifier: *\n[^\n]*\n|Signature Value:.*`)

// described is what openssl says of all certificates.
func (w *world) described() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, item := range primarytest.Items() {
		certificate, _ := w.Pair(item)
		all[item] = another.ReplaceAllString(openssl(w.t, certificate, "x509", "-noout", "-text"), "")
	}
	return all
}
