package certificates

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// keys are made once for all tests: RSA takes its time.
var keys = sync.OnceValue(func() map[string]crypto.Signer {
	made := map[string]crypto.Signer{}
	for name, kind := range map[string]KeyKind{"ca": ECDSAP256, "leaf": ECDSAP256, "other": ECDSAP256, "rsa": RSA2048} {
		key, err := NewKey(kind)
		if err != nil {
			panic(err)
		}
		made[name] = key
	}
	return made
})

// pki is a CA and a certificate that it signed, with names and usages of every sort.
type pki struct {
	ca         Authority
	leaf       *x509.Certificate
	leafKey    crypto.Signer
	caFile     File
	caKeyFile  File
	leafFile   File
	leafKeyOf  File
	otherKeyOf File
}

func newPKI(t testing.TB, leafKey string, caEnds time.Time) pki {
	t.Helper()
	ca := Authority{Key: keys()["ca"]}
	ca.Certificate = signed(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubernetes"}, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true, IsCA: true, NotBefore: now.Add(-2 * Year), NotAfter: caEnds,
	}, nil, ca)
	p := pki{ca: ca, leafKey: keys()[leafKey]}
	p.leaf = signed(t, &x509.Certificate{
		Subject:  pkix.Name{CommonName: "registry.kurl.svc.cluster.local", Organization: []string{"b", "a"}},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, UnknownExtKeyUsage: []asn1.ObjectIdentifier{{1, 3, 6, 1, 4, 1}},
		DNSNames: []string{"registry", "registry.kurl"}, IPAddresses: []net.IP{net.IPv4(10, 96, 0, 7).To4(), net.ParseIP("fd00::7")},
		EmailAddresses: []string{"a@b.c"}, URIs: []*url.URL{{Scheme: "spiffe", Host: "x", Path: "/y"}},
		BasicConstraintsValid: true, NotBefore: now.Add(-Year), NotAfter: now.Add(time.Hour),
	}, p.leafKey, ca)
	p.caFile, p.leafFile = File{"ca.crt", EncodeChain(ca.Certificate)}, File{"registry.crt", EncodeChain(p.leaf)}
	p.caKeyFile, p.leafKeyOf, p.otherKeyOf = keyFile(t, "ca.key", ca.Key), keyFile(t, "registry.key", p.leafKey), keyFile(t, "other.key", keys()["other"])
	return p
}

func keyFile(t testing.TB, name string, key crypto.Signer) File {
	t.Helper()
	content, err := EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return File{name, content}
}

// signed signs a certificate; with no key of its own it signs itself.
func signed(t testing.TB, template *x509.Certificate, key crypto.Signer, ca Authority) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(77)
	by := ca.Certificate
	if key == nil {
		by, key = template, ca.Key
	}
	certificate, err := sign(template, by, key.Public(), ca.Key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func pkcs8(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockPKCS8, Bytes: der})
}

func TestBadInputIsRefusedByFileAndBlock(t *testing.T) {
	p := newPKI(t, "leaf", now.Add(10*Year))
	expired := newPKI(t, "leaf", now.Add(-time.Hour))
	dir := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	target := put("target.crt", p.leafFile.Content)
	link := filepath.Join(dir, "link.crt")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	put("lonely.crt", p.caFile.Content)
	put("linked.crt", p.caFile.Content)
	if err := os.Symlink(target, filepath.Join(dir, "linked.key")); err != nil {
		t.Fatal(err)
	}
	one := func(content ...[]byte) func() error {
		return func() error { _, err := File{"x.crt", bytes.Join(content, nil)}.OneCertificate(); return err }
	}
	chain := func(content ...[]byte) func() error {
		return func() error { _, err := File{"x.crt", bytes.Join(content, nil)}.Chain(); return err }
	}
	key := func(content ...[]byte) func() error {
		return func() error { _, err := File{"x.key", bytes.Join(content, nil)}.Key(); return err }
	}
	broken := bytes.Replace(p.leafFile.Content, []byte("\nM"), []byte("\n!"), 1)
	for name, test := range map[string]struct {
		try  func() error
		want []string
		is   error
	}{
		"two certificates where one is expected": {try: one(p.leafFile.Content, p.caFile.Content), want: []string{"x.crt", "2 certificates, want one"}},
		"the key of another": {
			try:  func() error { _, _, err := Pair(p.leafFile, p.otherKeyOf); return err },
			want: []string{"other.key is not the key of registry.crt", "registry.kurl.svc"},
		},
		"an expired CA": {
			try:  func() error { _, err := NewAuthority(expired.caFile, expired.caKeyFile, now); return err },
			want: []string{"ca.crt", "expired at 2026-11-23T11:00:00Z"},
		},
		"a CA that is not valid yet": {
			try:  func() error { _, err := NewAuthority(p.caFile, p.caKeyFile, now.Add(-3*Year)); return err },
			want: []string{"ca.crt", "check the clock"},
		},
		"what is no CA": {
			try:  func() error { _, err := NewAuthority(p.leafFile, p.leafKeyOf, now); return err },
			want: []string{"registry.crt", "is not a CA"},
		},
		"a CA with the key of another": {
			try:  func() error { _, err := NewAuthority(p.caFile, p.otherKeyOf, now); return err },
			want: []string{"other.key is not the key of ca.crt"},
		},
		"a CA without a key": {
			try:  func() error { _, err := ReadAuthority(dir, "lonely", now); return err },
			want: []string{"lonely.key", "external"}, is: ErrExternalCA,
		},
		"a CA whose key is a link": {
			try:  func() error { _, err := ReadAuthority(dir, "linked", now); return err },
			want: []string{"linked.key", "symbolic link"}, is: ErrLink,
		},
		"a CA that is not there": {
			try:  func() error { _, err := ReadAuthority(dir, "none", now); return err },
			want: []string{"none.crt"}, is: fs.ErrNotExist,
		},
		"the wrong order":            {try: chain(p.caFile.Content, p.leafFile.Content), want: []string{"x.crt", "wrong order"}},
		"garbage behind":             {try: one(p.leafFile.Content, []byte("garbage")), want: []string{"x.crt", "after PEM block 1", "7 bytes"}},
		"garbage between":            {try: chain(p.leafFile.Content, broken, p.caFile.Content), want: []string{"x.crt", "block 2"}},
		"a broken block alone":       {try: one(broken), want: []string{"x.crt", "no PEM block"}},
		"a certificate of other DER": {try: one(pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: []byte("x")})), want: []string{"x.crt", "PEM block 1 is not a certificate"}},
		"a key for a certificate":    {try: one(p.leafKeyOf.Content), want: []string{"x.crt", "PEM block 1 is a EC PRIVATE KEY"}},
		"a certificate for a key":    {try: key(p.leafFile.Content), want: []string{"x.key", "it is a CERTIFICATE, want a private key"}},
		"two keys":                   {try: key(p.leafKeyOf.Content, p.otherKeyOf.Content), want: []string{"x.key", "2 PEM blocks"}},
		"an encrypted PKCS #8 key": {
			try:  key(pem.EncodeToMemory(&pem.Block{Type: blockEncrypted, Bytes: []byte("x")})),
			want: []string{"x.key", "encrypted"}, is: ErrEncrypted,
		},
		"an encrypted RSA key": {
			try:  key(pem.EncodeToMemory(&pem.Block{Type: blockRSA, Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, Bytes: []byte("x")})),
			want: []string{"x.key", "encrypted"}, is: ErrEncrypted,
		},
		"a key that is none": {try: key(pem.EncodeToMemory(&pem.Block{Type: blockRSA, Bytes: []byte("secret")})), want: []string{"x.key", "its type is RSA PRIVATE KEY, but its content has another type"}},
		"empty":              {try: one([]byte(" \n")), want: []string{"x.crt", "it is empty"}},
		"an empty key":       {try: key(), want: []string{"x.key", "it is empty"}},
		"a symbolic link":    {try: func() error { _, err := ReadFile(link); return err }, want: []string{"link.crt", "symbolic link"}, is: ErrLink},
		"a directory":        {try: func() error { _, err := ReadFile(dir); return err }, want: []string{dir, "not a regular file"}},
		"what cannot be read": {
			try:  func() error { _, err := ReadFile(filepath.Join(target, "x")); return err },
			want: []string{filepath.Join(target, "x") + ": not a directory"},
		},
		"too large": {try: func() error { _, err := ReadFile(put("large", make([]byte, maxFile+1))); return err }, want: []string{"large", "262145 bytes"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.try()
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("%q is not %q", err, test.is)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%q quotes the key", err)
			}
		})
	}
	if content, err := os.ReadFile(target); err != nil || !bytes.Equal(content, p.leafFile.Content) {
		t.Error("the file was touched")
	}
}

func TestOnlyACAThatMaySignIsAnAuthority(t *testing.T) {
	for name, test := range map[string]struct {
		is    bool
		usage x509.KeyUsage
		fine  bool
	}{
		"a CA":                           {true, x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, true},
		"a CA that says nothing of it":   {true, 0, true},
		"a CA that may not sign":         {true, x509.KeyUsageDigitalSignature, false},
		"no CA, whatever it says it may": {false, x509.KeyUsageCertSign, false},
	} {
		key := keys()["ca"]
		certificate := signed(t, &x509.Certificate{
			Subject: pkix.Name{CommonName: name}, KeyUsage: test.usage, BasicConstraintsValid: true, IsCA: test.is, NotBefore: now.Add(-Year), NotAfter: now.Add(Year),
		}, nil, Authority{Key: key})
		_, err := NewAuthority(File{"ca.crt", EncodeChain(certificate)}, keyFile(t, "ca.key", key), now)
		if (err == nil) != test.fine || err != nil && !strings.Contains(err.Error(), "is not a CA") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOddInputThatIsFineIsAccepted(t *testing.T) {
	p := newPKI(t, "rsa", now.Add(Year))
	crlf := func(content []byte) []byte { return bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n")) }
	for name, pair := range map[string][2][]byte{
		"as kubeadm writes them":  {p.leafFile.Content, p.leafKeyOf.Content},
		"CRLF":                    {crlf(p.leafFile.Content), crlf(p.leafKeyOf.Content)},
		"PKCS #8":                 {p.leafFile.Content, pkcs8(t, p.leafKey)},
		"text before, as openssl": {append([]byte("Certificate:\n    Data:\n"), p.leafFile.Content...), p.leafKeyOf.Content},
		"a chain":                 {append(bytes.Clone(p.leafFile.Content), p.caFile.Content...), p.leafKeyOf.Content},
		"empty lines behind":      {append(bytes.Clone(p.leafFile.Content), "\n\n"...), append(bytes.Clone(p.leafKeyOf.Content), "\n"...)},
	} {
		chain, key, err := Pair(File{"a", pair[0]}, File{"b", pair[1]})
		if err != nil || !chain[0].Equal(p.leaf) || KindOf(key.Public()) != RSA2048 {
			t.Errorf("%s: %v", name, err)
		}
	}
	ec := File{"ec.key", append(pem.EncodeToMemory(&pem.Block{Type: blockParameters, Bytes: []byte{6}}), keyFile(t, "", keys()["other"]).Content...)}
	if _, err := ec.Key(); err != nil {
		t.Error(err)
	}
	two, err := File{"two", append(bytes.Clone(p.leafFile.Content), p.leafFile.Content...)}.Bundle()
	if err != nil || len(two) != 2 {
		t.Errorf("a bundle has no order: %v", err)
	}
}

func TestARenewedCertificateIsLikeTheOldOne(t *testing.T) {
	for _, kind := range []string{"leaf", "rsa"} {
		p := newPKI(t, kind, now.Add(10*Year))
		renewed, key, err := Renew(p.leaf, p.ca, Renewal{Now: now, For: Year})
		if err != nil {
			t.Fatal(err)
		}
		ignored := cmpopts.IgnoreFields(x509.Certificate{}, "Raw", "RawTBSCertificate", "RawSubjectPublicKeyInfo", "Signature", "PublicKey", "SerialNumber", "NotBefore", "NotAfter", "SubjectKeyId", "Extensions")
		if diff := cmp.Diff(*p.leaf, *renewed, ignored, cmpopts.IgnoreUnexported(x509.Certificate{})); diff != "" {
			t.Errorf("%s: what should be kept is not (-old +new):\n%s", kind, diff)
		}
		switch {
		case renewed.SerialNumber.Cmp(p.leaf.SerialNumber) == 0 || renewed.SerialNumber.Sign() <= 0 || len(renewed.SerialNumber.Bytes()) > 20:
			t.Errorf("its serial number is %s", renewed.SerialNumber)
		case !renewed.NotBefore.Equal(now.Add(-5*time.Minute)) || !renewed.NotAfter.Equal(now.Add(Year)):
			t.Errorf("it is valid from %s to %s", renewed.NotBefore, renewed.NotAfter)
		case CheckKey(renewed, File{}, key, File{}) != nil || CheckKey(renewed, File{}, p.leafKey, File{}) == nil:
			t.Error("its key is not new, or not its own")
		case KindOf(renewed.PublicKey) != KindOf(p.leaf.PublicKey):
			t.Errorf("its key is %s", KindOf(renewed.PublicKey))
		}
		roots := x509.NewCertPool()
		roots.AddCert(p.ca.Certificate)
		for _, at := range []time.Time{now, now.Add(-4 * time.Minute), now.Add(Year - time.Minute)} {
			for _, name := range []string{"registry.kurl", "fd00::7"} {
				if _, err := renewed.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: at, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
					t.Errorf("%s at %s: %v", name, at, err)
				}
			}
		}
	}
}

func TestKeysOfOtherKindsAreRefusedByName(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := newPKI(t, "leaf", now.Add(Year))
	old := *p.leaf
	old.PublicKey = public
	if _, _, err := Renew(&old, p.ca, Renewal{Now: now, For: Year}); err == nil || !strings.Contains(err.Error(), "not Ed25519") {
		t.Errorf("got %v", err)
	}
	for kind, allowed := range map[KeyKind]bool{RSA2048: true, RSA3072: true, ECDSAP256: true, "RSA 1024": false, "ECDSA P-384": false} {
		key, err := NewKey(kind)
		if (err == nil) != allowed || err == nil && KindOf(key.Public()) != kind {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestARenewedCASignsItself(t *testing.T) {
	p := newPKI(t, "leaf", now.Add(time.Hour))
	ca, err := RenewCA(p.ca.Certificate, Renewal{Now: now, For: Year})
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Certificate.CheckSignatureFrom(ca.Certificate); err != nil || !ca.Certificate.IsCA || ca.Certificate.Equal(p.ca.Certificate) {
		t.Errorf("it is no new CA: %v", err)
	}
	if p.leaf.CheckSignatureFrom(ca.Certificate) == nil {
		t.Error("it has the old key")
	}
}

func TestTheProxysCertificateIsNamedByItsRule(t *testing.T) {
	p := newPKI(t, "rsa", now.Add(Year))
	chain, key, err := SelfSigned(p.leaf, KurlProxyHost, Renewal{Now: now, For: Year})
	if err != nil {
		t.Fatal(err)
	}
	leaf, ca := chain[0], chain[1]
	if want := KurlProxyHost + "@1795435200"; leaf.Subject.CommonName != want || ca.Subject.CommonName != KurlProxyHost+"-ca@1795435200" || leaf.Issuer.CommonName != ca.Subject.CommonName {
		t.Errorf("they are called %q by %q, want %q", leaf.Subject.CommonName, ca.Subject.CommonName, want)
	}
	if diff := cmp.Diff(Names(p.leaf), Names(leaf)); diff != "" {
		t.Errorf("the names changed:\n%s", diff)
	}
	if Foreign(leaf) || CheckKey(leaf, File{}, key, File{}) != nil {
		t.Error("it is foreign, or its key another's")
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: "registry"}); err != nil {
		t.Error(err)
	}
	if _, err := (File{"tls.crt", EncodeChain(chain...)}).Chain(); err != nil {
		t.Error(err)
	}
}

func TestACustomersOwnCertificateIsForeign(t *testing.T) {
	const host = KurlProxyHost
	for _, test := range []struct {
		issuer, subject string
		foreign         bool
	}{
		{"", host, false},
		{host, host, false},
		{host + "-ca@1", host + "@1", false},
		{"Let's Encrypt", host, true},
		{"", "admin.example.com", true},
		{host, "admin.example.com", true},
		{"x" + host, host, true},
		{"", "", true},
	} {
		certificate := &x509.Certificate{Issuer: pkix.Name{CommonName: test.issuer}, Subject: pkix.Name{CommonName: test.subject}}
		if Foreign(certificate) != test.foreign {
			t.Errorf("%+v is not so", test)
		}
	}
}

func TestFactsHaveNothingOfAKeyAndAreBounded(t *testing.T) {
	p := newPKI(t, "rsa", now.Add(Year))
	facts := Facts("Secret a/b (c)", p.leaf)
	if facts.Key != "RSA 2048" || facts.Serial != "4d" || facts.Subject != "CN=registry.kurl.svc.cluster.local,O=a+O=b" || facts.Issuer != "CN=kubernetes" ||
		!facts.NotAfter.Equal(now.Add(time.Hour)) || facts.CA || len(facts.Names) != 6 || len(facts.Fingerprint) != 64 {
		t.Errorf("the facts are %+v", facts)
	}
	if diff := cmp.Diff([]string{"digital signature", "key encipherment", "server auth", "client auth", "1.3.6.1.4.1"}, facts.Usages); diff != "" {
		t.Error(diff)
	}
	many := *p.leaf
	many.DNSNames = nil
	for range 1000 {
		many.DNSNames = append(many.DNSNames, strings.Repeat("x", 1000))
	}
	if facts := Facts("", &many); len(facts.Names) != maxNames || facts.MoreNames != 954 || len(facts.Names[0]) > maxName+len("…") {
		t.Errorf("%d names and %d more", len(facts.Names), facts.MoreNames)
	}
}

func TestWhatIsToldOfANameIsCutBetweenCharacters(t *testing.T) {
	for _, name := range []string{strings.Repeat("x", maxName-1) + "ü", strings.Repeat("ü", maxName), "a\xff", "a"} {
		told := Called(&x509.Certificate{Subject: pkix.Name{CommonName: name}})
		if !utf8.ValidString(told) || !strings.HasPrefix(name, strings.TrimSuffix(told, "…")) || strings.HasSuffix(told, "…") != (len(name) > maxName) {
			t.Errorf("of %q it tells %q", name, told)
		}
	}
}
