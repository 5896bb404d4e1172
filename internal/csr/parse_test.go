package csr_test

import (
	"encoding/json"
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
