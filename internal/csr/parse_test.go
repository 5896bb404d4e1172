package csr_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/journal"
)

// maxFacts is how large the facts of any request may become.
const maxFacts = 64 << 10

func FuzzParse(f *testing.F) {
	good := csrsim.Sign(csrsim.Template("w1", "w1", "10.0.0.1", "fd00::1"), nil)
	f.Add(good, "system:node:w1", "digital signature", "system:nodes")
	f.Add(append(good, good...), "system:node:w1\n", "server auth", "")
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"), "\xff\x00", "any", "system:nodes")
	f.Fuzz(func(t *testing.T, request []byte, user, usage, group string) {
		object := csrsim.Object("csr-1", "w1", request)
		object.Spec.Username, object.Spec.Groups = user, []string{group}
		object.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.KeyUsage(usage)}
		asked := csr.Parse(object)
		encoded, err := json.Marshal(asked)
		if err != nil || len(encoded) > maxFacts {
			t.Errorf("%d bytes of facts, %v", len(encoded), err)
		}
		texts := append(append(asked.Names(), asked.Usages...), asked.Organizations...)
		for _, text := range append(texts, asked.Requester, asked.CommonName, asked.Unfit, asked.Signer) {
			for _, c := range text {
				if c == utf8.RuneError || !unicode.IsPrint(c) {
					t.Errorf("%q cannot be printed", text)
				}
			}
		}
		if node := journal.KubeletOf(asked.Requester); node != "" && user != journal.NodeUser+node {
			t.Errorf("%q is taken for the kubelet of %q", user, node)
		}
		if asked.Unfit == "" && asked.Key.Kind == "" {
			t.Errorf("fit, and without key: %+v", asked)
		}
	})
}

// TestNamesThatGoDoesNotReadAreFound: another signer may read them, and put them into the certificate.
func TestNamesThatGoDoesNotReadAreFound(t *testing.T) {
	name := func(tag byte, content string) string { return string([]byte{tag, byte(len(content))}) + content }
	sequence := func(names ...string) string { return name(0x30, strings.Join(names, "")) }
	dns, subject := name(0x82, "w1"), sequence()
	for of, test := range map[string]struct {
		value string
		want  bool
	}{
		"a DNS name":                {sequence(dns), false},
		"no name":                   {sequence(), false},
		"an otherName":              {sequence(dns, name(0xa0, "\x06\x01\x01"+name(0xa0, name(0x0c, "w2")))), true},
		"an otherName alone":        {sequence(name(0xa0, "\x06\x01\x01"+name(0xa0, name(0x0c, "w2")))), true},
		"an x400Address":            {sequence(dns, name(0xa3, subject)), true},
		"a directoryName":           {sequence(dns, name(0xa4, subject)), true},
		"an ediPartyName":           {sequence(dns, name(0xa5, name(0x81, "w2"))), true},
		"a registeredID":            {sequence(dns, name(0x88, "\x2a\x03")), true},
		"a DNS name that has parts": {sequence(dns, name(0xa2, name(0x82, "w2"))), true},
		"further names behind":      {sequence(dns) + sequence(name(0x82, "w2")), true},
	} {
		template := csrsim.Template("w1")
		template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte(test.value)}}
		asked := csr.Parse(csrsim.Object("csr-1", "w1", csrsim.Sign(template, nil)))
		if got := strings.Contains(asked.Unfit, "neither DNS names nor addresses"); got != test.want || !got && asked.Unfit != "" {
			t.Errorf("%s: %q", of, asked.Unfit)
		}
	}
	if !csr.HasFurtherNames([]byte("no ASN.1"), &x509.CertificateRequest{}) {
		t.Error("what cannot be read is taken for no names")
	}
}

func TestADecidedRequestIsNotEvenParsed(t *testing.T) {
	for want, conditions := range map[csr.Decision][]certificatesv1.RequestConditionType{
		csr.Pending:  nil,
		csr.Approved: {certificatesv1.CertificateApproved},
		csr.Denied:   {certificatesv1.CertificateDenied},
		csr.Failed:   {certificatesv1.CertificateFailed},
	} {
		object := csrsim.Asks("csr-1", "w1", "w1")
		for _, condition := range conditions {
			object.Status.Conditions = append(object.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: condition})
		}
		got := csr.Of(object)
		if got.Decision != want || (got.Asked.Fingerprint == "") != (want != csr.Pending) {
			t.Errorf("%v is %+v", conditions, got)
		}
	}
	signed := csrsim.Asks("csr-1", "w1", "w1")
	signed.Status.Certificate = []byte("signed")
	if got := csr.Of(signed); got.Decision != csr.Approved {
		t.Errorf("with a certificate it is %+v", got)
	}
}
