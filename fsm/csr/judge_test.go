package csr_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	fsmcsr "github.com/replicatedhq/ekco/fsm/csr"
	"github.com/replicatedhq/ekco/internal/csr"
	"github.com/replicatedhq/ekco/internal/csr/csrsim"
	"github.com/replicatedhq/ekco/journal"
)

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	return must(rsa.GenerateKey(rand.Reader, bits))(t)
}

func curveKey(t *testing.T, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	return must(ecdsa.GenerateKey(curve, rand.Reader))(t)
}

func must[V any](v V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// judged parses an object and judges it in a cluster.
func judged(object *certificatesv1.CertificateSigningRequest, around journal.CSRAround) fsmcsr.Verdict {
	asked := csr.Parse(object)
	whole := fsmcsr.Judge(asked, around)
	if reduced := fsmcsr.Judge(asked, around.For(asked)); reduced != whole {
		panic("what concerns the request leads to " + reduced.Reason + ", all of it to " + whole.Reason)
	}
	return whole
}

// here is a cluster with the node and two others, one with the node's second address.
func here(addresses ...string) journal.CSRAround {
	return journal.CSRAround{
		Node: &journal.CSRNode{UID: "uid-w1", Addresses: addresses, InternalIPs: addresses[:1]},
		Cluster: []journal.CSRClaim{
			{Name: "10.96.0.1", By: "the address of the Kubernetes API"},
			{Name: "fd00:96::1", By: "the address of the Kubernetes API"},
			{Name: "10.0.0.100", By: "the endpoint of the control plane", Endpoint: true},
			{Name: "lb.example.com", By: "the endpoint of the control plane", Endpoint: true},
		},
		Others: []journal.CSRClaim{{Name: "10.0.0.2", By: "node w2"}, {Name: "w2", By: "node w2"}, {Name: "10.0.0.77", By: "node w3"}},
	}
}

func TestRequestsOfRealKubeletsFit(t *testing.T) {
	for name, test := range map[string]struct {
		addresses, names []string
		key              crypto.Signer
		old              bool
		primary          bool
	}{
		"IPv4":                        {addresses: []string{"10.0.0.1", "w1"}, names: []string{"w1", "10.0.0.1"}},
		"IPv6":                        {addresses: []string{"fd00::1", "w1"}, names: []string{"w1", "fd00:0:0:0::1"}},
		"IPv6 in upper case":          {addresses: []string{"FD00::00A1", "w1"}, names: []string{"w1", "fd00::a1"}},
		"dual-stack":                  {addresses: []string{"10.0.0.1", "fd00::1", "w1"}, names: []string{"w1", "10.0.0.1", "fd00::1"}},
		"hostname override":           {addresses: []string{"10.0.0.1", "w1.rack-7.example.com"}, names: []string{"w1.rack-7.example.com", "10.0.0.1"}},
		"hostname in another case":    {addresses: []string{"10.0.0.1", "W1.Example.com"}, names: []string{"w1.example.COM", "10.0.0.1"}},
		"hostname that is an address": {addresses: []string{"10.0.0.1", "10.0.0.9"}, names: []string{"10.0.0.1", "10.0.0.9"}},
		"external addresses": {
			addresses: []string{"10.0.0.1", "203.0.113.7", "w1", "ec2-203-0-113-7.compute.amazonaws.com", "w1.internal"},
			names:     []string{"w1", "ec2-203-0-113-7.compute.amazonaws.com", "w1.internal", "10.0.0.1", "203.0.113.7"},
		},
		"a name like a pod's":   {addresses: []string{"10.0.0.1", "a.rack-1.pod.example.com", "w1.pod", "w1-cluster.local"}, names: []string{"a.rack-1.pod.example.com", "w1.pod", "w1-cluster.local"}},
		"some of its addresses": {addresses: []string{"10.0.0.1", "203.0.113.7", "w1"}, names: []string{"10.0.0.1"}},
		"RSA before 1.27":       {addresses: []string{"10.0.0.1", "w1"}, names: []string{"w1", "10.0.0.1"}, key: rsaKey(t, 2048), old: true},
		"RSA of 3072 bits":      {addresses: []string{"10.0.0.1", "w1"}, names: []string{"w1"}, key: rsaKey(t, 3072)},
		"ECDSA before 1.27":     {addresses: []string{"10.0.0.1", "w1"}, names: []string{"w1", "10.0.0.1"}, old: true},
		"P-384":                 {addresses: []string{"10.0.0.1", "w1"}, names: []string{"w1"}, key: curveKey(t, elliptic.P384())},
		"Ed25519":               {addresses: []string{"10.0.0.1", "w1"}, names: []string{"w1"}, key: ed25519.NewKeyFromSeed(make([]byte, 32))},
		"single primary, whose address is the endpoint": {
			addresses: []string{"10.0.0.100", "w1"}, names: []string{"w1", "10.0.0.100"}, primary: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := csrsim.Object("csr-1", "w1", csrsim.Sign(csrsim.Template("w1", test.names...), test.key))
			if test.old {
				object.Spec.Usages = csrsim.OldUsages
			}
			around := here(test.addresses...)
			around.Node.Primary = test.primary
			if got := judged(object, around); got.Answer != fsmcsr.Fits || got.Reason != "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

type object = certificatesv1.CertificateSigningRequest

// forged makes the request of w1 for its name and address, changed.
func forged(change func(*x509.CertificateRequest), names ...string) *object {
	template := csrsim.Template("w1", append([]string{"w1", "10.0.0.1"}, names...)...)
	if change != nil {
		change(template)
	}
	return csrsim.Object("csr-1", "w1", csrsim.Sign(template, nil))
}

func changed(change func(*object)) *object {
	o := forged(nil)
	change(o)
	return o
}

func TestEachForgeryIsRefusedForItsOwnReason(t *testing.T) {
	uri := must(url.Parse("spiffe://cluster.local/w1"))(t)
	signed := csrsim.Sign(csrsim.Template("w1", "w1"), nil)
	block, _ := pem.Decode(signed)
	tampered := bytes.Clone(block.Bytes)
	tampered[len(tampered)-1] ^= 1
	inPEM := func(der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	request := func(text []byte) *object { return changed(func(o *object) { o.Spec.Request = text }) }
	for name, test := range map[string]struct {
		object *object
		says   string
	}{
		"another signer":              {changed(func(o *object) { o.Spec.SignerName = "kubernetes.io/kube-apiserver-client" }), "it is for signer kubernetes.io/kube-apiserver-client"},
		"a person":                    {changed(func(o *object) { o.Spec.Username = "mallory" }), "created by mallory, which is not a kubelet"},
		"a service account":           {changed(func(o *object) { o.Spec.Username = "system:serviceaccount:a:b" }), "created by system:serviceaccount:a:b, which is not a kubelet"},
		"a nameless kubelet":          {changed(func(o *object) { o.Spec.Username = "system:node:" }), "which is not a kubelet"},
		"a name that breaks lines":    {changed(func(o *object) { o.Spec.Username = "system:node:w1\n\x1b[2J" }), `created by system:node:w1\n\x1b[2J, which is not a kubelet`},
		"not among the nodes":         {changed(func(o *object) { o.Spec.Groups = []string{"system:authenticated"} }), "not in group system:nodes"},
		"another node's common name":  {forged(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:node:w2" }), "its common name is system:node:w2, but system:node:w1 created it"},
		"no common name":              {forged(func(r *x509.CertificateRequest) { r.Subject.CommonName = "" }), "its common name is empty"},
		"an administrator":            {forged(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }), "its organization is system:masters"},
		"two organizations":           {forged(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes", "system:masters"} }), "its organization is system:nodes, system:masters, not"},
		"no organization":             {forged(func(r *x509.CertificateRequest) { r.Subject.Organization = nil }), "its organization is empty"},
		"more in the subject":         {forged(func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }), "more than a common name and an organization"},
		"two common names":            {forged(func(r *x509.CertificateRequest) { r.Subject.ExtraNames = twice("system:node:w1", "system:node:w2") }), "several common names"},
		"an e-mail address":           {forged(func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b.c"} }), "it asks for e-mail addresses"},
		"a URI":                       {forged(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri} }), "it asks for URIs"},
		"no names":                    {forged(func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }), "it asks for no name at all"},
		"empty alternative names":     {forged(emptyNames), "it asks for no name at all"},
		"an authority":                {forged(authority), "it asks for the extension 2.5.29.19"},
		"client auth too":             {changed(func(o *object) { o.Spec.Usages = append(o.Spec.Usages, certificatesv1.UsageClientAuth) }), "it asks for usage client auth"},
		"no server auth":              {changed(func(o *object) { o.Spec.Usages = o.Spec.Usages[:1] }), "it does not ask for usage server auth"},
		"no digital signature":        {changed(func(o *object) { o.Spec.Usages = csrsim.OldUsages[1:] }), "it does not ask for usage digital signature"},
		"a usage twice":               {changed(func(o *object) { o.Spec.Usages = append(o.Spec.Usages, certificatesv1.UsageServerAuth) }), "usage server auth twice"},
		"any usage":                   {changed(func(o *object) { o.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageAny} }), "it asks for usage any"},
		"a weak RSA key":              {request(csrsim.Sign(csrsim.Template("w1", "w1"), rsaKey(t, 1024))), "its RSA key has 1024 bits, which is less than 2048"},
		"a weak curve":                {request(csrsim.Sign(csrsim.Template("w1", "w1"), curveKey(t, elliptic.P224()))), "its curve has 224 bits"},
		"a signature by nobody":       {request(inPEM(tampered)), "its signature is not by its own key"},
		"trailing data in the block":  {request(inPEM(append(bytes.Clone(block.Bytes), 0))), "not a certificate request (PKCS#10)"},
		"trailing data":               {request(append(bytes.Clone(signed), "and more"...)), "more text after its PEM block"},
		"leading data":                {request(append([]byte("x\n"), signed...)), "does not begin with a PEM block"},
		"several blocks":              {request(append(bytes.Clone(signed), signed...)), "several PEM blocks"},
		"a broken block before it":    {request(append([]byte("-----BEGIN CERTIFICATE REQUEST-----\n!\n-----END CERTIFICATE REQUEST-----\n"), signed...)), "several PEM blocks"},
		"a label that is empty":       {forged(nil, "kubernetes.."), "it asks for kubernetes.., which is not a DNS name"},
		"a first label that is empty": {forged(nil, ".example.com"), "it asks for .example.com, which is not a DNS name"},
		"nothing but a dot":           {forged(nil, "."), "it asks for ., which is not a DNS name"},
		"the API's address, absolute": {forged(nil, "10.96.0.1."), "it asks for 10.96.0.1., which"},
		"loopback, absolute":          {forged(nil, "127.0.0.1."), "it asks for 127.0.0.1., which"},
		"alternative names twice":     {forged(func(r *x509.CertificateRequest) { r.ExtraExtensions = append(r.ExtraExtensions, names(), names()) }), "not a certificate request (PKCS#10)"},
		"a critical extension": {forged(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}}}
		}), "it asks for the extension 1.2.3"},
		"two common names in one RDN": {request(oneRDN(t)), "several common names"},
		"headers":                     {request(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Headers: map[string]string{"a": "b"}, Bytes: block.Bytes})), "its PEM block has headers"},
		"another block":               {request(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})), "does not begin with a PEM block"},
		"nothing":                     {request(nil), "does not begin with a PEM block"},
		"a megabyte":                  {request(bytes.Repeat([]byte("a"), 1<<20)), "it is larger than 16 KiB"},
		"too many names":              {forged(nil, strings.Split(strings.Repeat("w1,", 70)+"w1", ",")...), "it asks for 73 names, which is more than 64"},
		"a wildcard":                  {forged(nil, "*.example.com"), "it asks for the wildcard *.example.com"},
		"an address as a DNS name":    {forged(func(r *x509.CertificateRequest) { r.DNSNames = []string{"10.0.0.1"} }), "the address 10.0.0.1 as a DNS name"},
		"control characters":          {forged(nil, "w1\r\nadmin"), `it asks for w1\r\nadmin, which is not a DNS name`},
		"a huge name":                 {forged(nil, strings.Repeat("a", 5000)), "aaa..., which is not a DNS name"},
		"IPv4 as IPv6":                {request(csrsim.Sign(mapped(), nil)), "it asks for 10.0.0.1 in the form of an IPv6 address"},
		"the API's address":           {forged(nil, "10.96.0.1"), "it asks for 10.96.0.1, which is the address of the Kubernetes API"},
		"the API's IPv6 address":      {forged(nil, "fd00:96:0::1"), "it asks for fd00:96::1, which is the address of the Kubernetes API"},
		"the API's name":              {forged(nil, "kubernetes.default.svc.cluster.local"), "which is the name of the Kubernetes API"},
		"the API's name in capitals":  {forged(nil, "Kubernetes.Default.SVC"), "it asks for Kubernetes.Default.SVC, which is the name of the Kubernetes API"},
		"the API's name, absolute":    {forged(nil, "kubernetes.default."), "which is the name of the Kubernetes API"},
		"the API's shortest name":     {forged(nil, "kubernetes"), "which is the name of the Kubernetes API"},
		"a Service's name":            {forged(nil, "registry.kurl.svc.cluster.local"), "which is the name of a Service in the cluster"},
		"a Service's short name":      {forged(nil, "webhook.default.SVC."), "which is the name of a Service in the cluster"},
		"a pod's name":                {forged(nil, "10-32-0-5.kurl.pod.cluster.local"), "which is a name in the cluster's DNS"},
		"a pod's short name":          {forged(nil, "10-32-0-5.KURL.pod."), "which is a name in the cluster's DNS"},
		"a pod's IPv6 name":           {forged(nil, "fd00--5.kurl.pod.corp.example"), "which is a name in the cluster's DNS"},
		"the cluster's domain":        {forged(nil, "cluster.local"), "which is a name in the cluster's DNS"},
		"the DNS server's name":       {forged(nil, "NS.dns.cluster.local."), "which is a name in the cluster's DNS"},
		"another sort of name":        {request(csrsim.Sign(directory(), nil)), "neither DNS names nor addresses"},
		"localhost":                   {forged(nil, "LocalHost"), "it asks for LocalHost, which is a name of every machine"},
		"localhost's subdomain":       {forged(nil, "a.localhost"), "which is a name of every machine"},
		"localhost's domain":          {forged(nil, "localhost.localdomain"), "which is a name of every machine"},
		"loopback":                    {forged(nil, "127.0.0.53"), "it asks for 127.0.0.53, which is a loopback address"},
		"loopback in IPv6":            {forged(nil, "::1"), "it asks for ::1, which is a loopback address"},
		"link-local":                  {forged(nil, "169.254.169.254"), "which is a link-local address"},
		"link-local in IPv6":          {forged(nil, "fe80::1"), "which is a link-local address"},
		"unspecified":                 {forged(nil, "0.0.0.0"), "which is the unspecified address"},
		"unspecified in IPv6":         {forged(nil, "::"), "which is the unspecified address"},
		"multicast":                   {forged(nil, "224.0.0.1"), "which is a multicast or broadcast address"},
		"broadcast":                   {forged(nil, "255.255.255.255"), "which is a multicast or broadcast address"},
		"the endpoint":                {forged(nil, "10.0.0.100"), "it asks for 10.0.0.100, which is the endpoint of the control plane"},
		"the endpoint's name":         {forged(nil, "LB.example.com"), "which is the endpoint of the control plane"},
		"an unknown address":          {forged(nil, "192.0.2.1"), "it asks for 192.0.2.1, which is not among the addresses of Node w1 (10.0.0.1, w1"},
		"an unknown name":             {forged(nil, "registry.example.com"), "it asks for registry.example.com, which is not among the addresses of Node w1"},
		"another node's name":         {forged(nil, "w2"), "it asks for w2, which is not among the addresses of Node w1"},
		"an address that another has": {forged(nil, "10.0.0.77"), "it asks for 10.0.0.77, which node w3 has too"},
	} {
		t.Run(name, func(t *testing.T) {
			// The Node claims what a Node must not have as well: it may be its kubelet that lies.
			around := here("10.0.0.1", "w1", "10.0.0.77", "127.0.0.53", "localhost", "10.96.0.1", "10.0.0.100", "kubernetes", "169.254.169.254", "*.example.com")
			got := judged(test.object, around)
			if got.Answer != fsmcsr.Unfit || got.Key == "" || !strings.Contains(got.Reason, test.says) {
				t.Errorf("got %+v, want %q", got, test.says)
			}
			if strings.ContainsAny(got.Reason, "\r\n\x1b") || len(got.Reason) > 1000 {
				t.Errorf("%d bytes, not escaped: %q", len(got.Reason), got.Reason)
			}
		})
	}
}

// mapped asks for an IPv4 address in the form of an IPv6 address, which crypto/x509 does
// not encode.
func mapped() *x509.CertificateRequest {
	template := csrsim.Template("w1")
	value, err := asn1.Marshal([]asn1.RawValue{{Tag: 7, Class: asn1.ClassContextSpecific, Bytes: net.ParseIP("10.0.0.1").To16()}})
	if err != nil {
		panic(err)
	}
	template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	return template
}

// directory asks for a name of a sort that Go passes over.
func directory() *x509.CertificateRequest {
	template := csrsim.Template("w1")
	value, err := asn1.Marshal([]asn1.RawValue{
		{Tag: 2, Class: asn1.ClassContextSpecific, Bytes: []byte("w1")},
		{Tag: 4, Class: asn1.ClassContextSpecific, IsCompound: true, Bytes: []byte{0x30, 0}},
	})
	if err != nil {
		panic(err)
	}
	template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: value}}
	return template
}

func emptyNames(r *x509.CertificateRequest) {
	r.DNSNames, r.IPAddresses = nil, nil
	r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte{0x30, 0}}}
}

func authority(r *x509.CertificateRequest) {
	r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 3, 1, 1, 0xff}}}
}

func twice(names ...string) (all []pkix.AttributeTypeAndValue) {
	for _, name := range names {
		all = append(all, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: name})
	}
	return all
}

// oneRDN has two common names in one part of its subject, of which another reader than Go
// may take the other.
func oneRDN(t *testing.T) []byte {
	template := csrsim.Template("w1", "w1")
	organization := pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: "system:nodes"}
	template.RawSubject = must(asn1.Marshal(pkix.RDNSequence{
		pkix.RelativeDistinguishedNameSET{organization},
		twice("system:node:w2", "system:node:w1"),
	}))(t)
	return csrsim.Sign(template, nil)
}

func names() pkix.Extension { return mapped().ExtraExtensions[0] }

func TestWhatARequestIsJudgedBy(t *testing.T) {
	good := forged(nil)
	for name, test := range map[string]struct {
		around journal.CSRAround
		want   fsmcsr.Answer
		says   string
	}{
		"no Node":                     {journal.CSRAround{}, fsmcsr.Unfit, "there is no Node w1"},
		"no addresses yet":            {journal.CSRAround{Node: &journal.CSRNode{UID: "u"}}, fsmcsr.Waits, "Node w1 has no addresses yet"},
		"nobody knows":                {journal.CSRAround{Unknown: "get services: forbidden"}, fsmcsr.Unfit, "EKCO cannot check whose names it asks for: get services: forbidden"},
		"its address was another's":   {here("10.0.0.5", "w1"), fsmcsr.Unfit, "10.0.0.1, which is not among"},
		"a replacement's predecessor": {journal.CSRAround{Node: &journal.CSRNode{Addresses: []string{"w1", "10.0.0.1"}}, Others: []journal.CSRClaim{{Name: "10.0.0.1", By: "node old"}}}, fsmcsr.Unfit, "which node old has too"},
		"an IPv4 address as IPv6":     {here("::ffff:10.0.0.1", "w1"), fsmcsr.Fits, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judged(good, test.around); got.Answer != test.want || !strings.Contains(got.Reason, test.says) {
				t.Errorf("%+v", got)
			}
		})
	}
	endpoint := forged(nil, "10.0.0.100")
	for name, test := range map[string]struct {
		primary  bool
		internal string
		want     fsmcsr.Answer
	}{
		"a worker":               {false, "10.0.0.100", fsmcsr.Unfit},
		"a primary":              {true, "10.0.0.100", fsmcsr.Fits},
		"a primary's ExternalIP": {true, "10.0.0.1", fsmcsr.Fits},
	} {
		around := here("10.0.0.1", "w1", "10.0.0.100")
		around.Node.Primary, around.Node.InternalIPs = test.primary, []string{test.internal}
		if got := judged(endpoint, around); got.Answer != test.want {
			t.Errorf("the endpoint is the address of %s: %+v", name, got)
		}
	}
}

func TestANameOfTheAPIServersIsAPrimarysOwnOrNobodys(t *testing.T) {
	for want, around := range map[fsmcsr.Answer]journal.CSRAround{
		fsmcsr.Fits:  {Node: &journal.CSRNode{Primary: true, Addresses: []string{"10.0.0.1", "w1"}}},
		fsmcsr.Unfit: {Node: &journal.CSRNode{Addresses: []string{"10.0.0.1", "w1"}}},
	} {
		around.Cluster = []journal.CSRClaim{{Name: "10.0.0.1", By: "a name of the API servers", Primaries: true}}
		if got := judged(forged(nil), around); got.Answer != want {
			t.Errorf("a primary %t: %+v", around.Node.Primary, got)
		}
	}
}

// TestAPrimarysHostNameMayBeTheEndpoint: a primary may have its host name in controlPlaneEndpoint, unless
// another node has that name too.
func TestAPrimarysHostNameMayBeTheEndpoint(t *testing.T) {
	for name, test := range map[string]struct {
		primary bool
		others  []journal.CSRClaim
		want    fsmcsr.Answer
	}{
		"a worker's":            {false, nil, fsmcsr.Unfit},
		"a primary's":           {true, nil, fsmcsr.Fits},
		"that of two primaries": {true, []journal.CSRClaim{{Name: "LB.example.com", By: "node p2"}}, fsmcsr.Unfit},
	} {
		around := here("10.0.0.1", "w1", "lb.example.com")
		around.Node.Primary, around.Others = test.primary, test.others
		if got := judged(forged(nil, "lb.example.com"), around); got.Answer != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOnlyTheEndpointAndNamesOfAPIServersAreAPrimarysOwn(t *testing.T) {
	around := journal.CSRAround{
		Node:    &journal.CSRNode{Primary: true, Addresses: []string{"10.0.0.1", "w1"}, InternalIPs: []string{"10.0.0.1"}},
		Cluster: []journal.CSRClaim{{Name: "10.0.0.1", By: "the address of the Kubernetes API"}},
	}
	if got := judged(forged(nil), around); got.Answer != fsmcsr.Unfit {
		t.Errorf("what is neither the endpoint nor a name of the API servers is taken for a primary's own: %+v", got)
	}
}

func TestAKeyOfAnotherKindIsRefused(t *testing.T) {
	asked := csr.Parse(forged(nil))
	asked.Key = journal.CSRKey{Kind: "DSA", Bits: 3072}
	if got := fsmcsr.Judge(asked, here("10.0.0.1", "w1")); got.Answer != fsmcsr.Unfit || !strings.Contains(got.Reason, "its key is of kind DSA") {
		t.Errorf("%+v", got)
	}
}
