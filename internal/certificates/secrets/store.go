package secrets

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// Options of [New].
type Options struct {
	// Registry, KurlProxy, Contour, Envoy and KubeletClient are the names of the Secrets, such as "kurl/registry-pki". A
	// Secret without a namespace is not configured.
	Registry, KurlProxy, Contour, Envoy, KubeletClient kube.Ref
	// Authority reads the cluster's CA.
	Authority func(at time.Time) (certificates.Authority, error)
	// Client reads the pair with which API servers authenticate to kubelets.
	Client func() (Client, error)
	// Accepts returns an error unless a kubelet accepts a client with the pair. The default is [Kubelets.Accept].
	Accepts func(ctx context.Context, pair tls.Certificate) error
	// Off is the reason why EKCO renews no certificates, or empty if it renews them.
	Off string
	// Leaf returns the certificate that is served at an address. The default is [certificates.Served].
	Leaf func(ctx context.Context, address string) (*x509.Certificate, error)
	// NewKey creates keys. The default is [certificates.NewKey].
	NewKey func(certificates.KeyKind) (crypto.Signer, error)
	// ServerTime returns the API server's time if it is known. nil means that it is never known.
	ServerTime func() (now time.Time, known bool)
}

// Store reads and renews certificates in Secrets. It is safe for concurrent use.
type Store struct {
	objects kube.Objects
	options Options
	bundles map[string]bundle
	// attempts has the renewals for which not all Secrets are written yet.
	attempts *attempts
}

// New returns a store. It sends no request.
func New(objects kube.Objects, options Options) *Store {
	if options.Leaf == nil {
		options.Leaf = certificates.Served
	}
	if options.Accepts == nil {
		options.Accepts = Kubelets{Objects: objects}.Accept
	}
	return &Store{objects: objects, options: options, attempts: &attempts{of: map[string]*attempt{}}, bundles: map[string]bundle{
		journal.CertificateRegistry.Name: registry{options}, journal.CertificateKurlProxy.Name: kurlProxy{options}, journal.CertificateContour.Name: contour{options},
		journal.CertificateKubeletClient.Name: kubeletClient{options},
	}}
}

// SecretRef names a Secret.
func SecretRef(namespace, name string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "secrets", Namespace: namespace, Name: name}
}

// Subjects returns all certificates in Secrets, in the order in which they are shown.
func Subjects() []journal.Subject {
	return []journal.Subject{
		journal.CertificateRegistry, journal.CertificateKurlProxy, journal.CertificateContour, journal.CertificateKubeletClient,
	}
}

// Refs returns the configured Secrets of a certificate.
func (s *Store) Refs(of journal.Subject) (refs []kube.Ref) {
	for _, secret := range s.bundles[of.Name].secrets() {
		if secret.ref.Namespace != "" {
			refs = append(refs, secret.ref)
		}
	}
	return refs
}

// bundle is one kind of certificates that are renewed together.
type bundle interface {
	// secrets lists the Secrets and their keys.
	secrets() []secretOf
	// foreign reports whether the certificates are a customer's own.
	foreign(held []stored) bool
	// inconsistency returns a text about certificates that do not belong together, or "".
	inconsistency(held []stored) string
	// original returns the original of the certificate if the certificate is a copy, otherwise nil.
	original(held []stored) (*journal.CertificateOriginal, error)
	// ready returns an error if the certificates cannot be renewed.
	ready(ctx context.Context, held []stored, now time.Time) error
	// renew sets the new content of the Secrets.
	renew(held []stored, r certificates.Renewal) error
	// servers returns the servers of the certificate.
	servers() servers
}

// secretOf names a Secret and the keys in it.
type secretOf struct {
	ref kube.Ref
	// certificate, key and ca are the names of the Secret's keys with the certificate, its private key and the CA. A name
	// is "" if the Secret does not have that key.
	certificate, key, ca string
	// most is the maximum number of certificates in a chain.
	most int
}

// stored is the content of a Secret with certificates.
type stored struct {
	of     secretOf
	secret secret
	// chain has the certificates that could be read, even if the facts report a problem.
	chain []*x509.Certificate
	ca    *x509.Certificate
}

var errForeign = errors.New("kURL did not generate it, so it is a customer's own")

// Read returns the facts of certificates. It returns kube.ErrNotFound if one of the Secrets does not exist, and an
// error if the state is unknown.
func (s *Store) Read(ctx context.Context, of journal.Subject) (journal.CertificateFacts, error) {
	facts, _, err := s.read(ctx, of)
	return facts, err
}

func (s *Store) read(ctx context.Context, of journal.Subject) (journal.CertificateFacts, []stored, error) {
	if err := s.Clock(); err != nil {
		return journal.CertificateFacts{}, nil, err
	}
	b, known := s.bundles[of.Name]
	if !known {
		return journal.CertificateFacts{}, nil, fmt.Errorf("read %s %s: EKCO knows no such certificate in a Secret", of.Kind, of.Name)
	}
	var all []stored
	for _, secretOf := range b.secrets() {
		if secretOf.ref.Namespace == "" || secretOf.ref.Name == "" {
			return journal.CertificateFacts{}, nil, fmt.Errorf("read %s %s: no Secret is configured: %w", of.Kind, of.Name, kube.ErrNotFound)
		}
		content, err := s.objects.ReadObject(ctx, secretOf.ref)
		if err != nil {
			return journal.CertificateFacts{}, nil, err
		}
		read, err := decode(secretOf.ref, content)
		if err != nil {
			return journal.CertificateFacts{}, nil, err
		}
		all = append(all, stored{of: secretOf, secret: read})
	}
	return s.facts(b, all), all, nil
}

// MostSkew is how far the clocks of EKCO and the API server may differ when certificates are checked. New certificates
// are valid from this time before their creation.
const MostSkew = certificates.Back

// Clock returns an error if the clocks of EKCO and the API server differ by more than [MostSkew]: then EKCO does not
// know which certificates are due.
func (s *Store) Clock() error {
	if s.options.ServerTime == nil {
		return nil
	}
	server, known := s.options.ServerTime()
	ahead, how := time.Until(server), "ahead of"
	if ahead < 0 {
		how = "behind"
	}
	if known && ahead.Abs() > MostSkew {
		return fmt.Errorf("the API server's clock is %s %s EKCO's: EKCO checks no certificates until one of them is corrected",
			ahead.Abs().Round(time.Minute), how)
	}
	return nil
}

// facts returns the facts of the Secrets.
func (s *Store) facts(b bundle, all []stored) journal.CertificateFacts {
	facts := journal.CertificateFacts{Version: journal.CertificateFactsVersion, Unrenewed: s.options.Off}
	for i := range all {
		if err := all[i].certificates(&facts); err != nil && facts.Unreadable == "" {
			facts.Unreadable = err.Error()
		}
	}
	now := time.Now()
	facts.Within = journal.ExpiryWarningFor(facts.Ends(), now)
	if len(facts.Certificates) == 0 {
		facts.Within = ""
	}
	// A customer's certificate is recognized by the first certificate of its chain. Errors in the rest do not matter,
	// because EKCO does not change it.
	if b.foreign(all) {
		facts.Foreign, facts.Unrenewed, facts.Unreadable = true, errForeign.Error(), ""
		return facts
	}
	if facts.Unreadable == "" {
		facts.Unreadable = whyUnusable(all, now)
	}
	if facts.Unreadable != "" {
		return facts
	}
	original, err := b.original(all)
	if err != nil {
		facts.Unreadable = err.Error()
	}
	facts.Original = original
	return facts
}

// whyUnusable returns a text about a problem of certificates that could be read, or "".
func whyUnusable(all []stored, now time.Time) string {
	for _, h := range all {
		if err := h.pair(); err != nil {
			return err.Error()
		}
		if early := h.early(now); early != "" {
			return early
		}
	}
	return ""
}

// early returns a text about a certificate that is not valid yet, or "".
func (h *stored) early(now time.Time) string {
	of := func(key string, certificate *x509.Certificate) string {
		if !now.Add(MostSkew).Before(certificate.NotBefore) {
			return ""
		}
		return fmt.Sprintf("%s (%s) is not valid before %s; check the clock; if it is right, recreate the certificate",
			h.secret.file(key).Name, certificates.Called(certificate), certificate.NotBefore.UTC().Format(time.RFC3339))
	}
	for _, certificate := range h.chain {
		if early := of(h.of.certificate, certificate); early != "" {
			return early
		}
	}
	if h.ca != nil {
		return of(h.of.ca, h.ca)
	}
	return ""
}

// maxReported is the maximum number of reported certificates of an unexpected chain.
const maxReported = 10

// certificates adds the public facts of the certificates. If a chain has an error, it adds the readable certificates,
// so that their expiry is known.
func (h *stored) certificates(facts *journal.CertificateFacts) (err error) {
	file := h.secret.file(h.of.certificate)
	if h.chain, err = file.Chain(); err == nil && len(h.chain) > h.of.most {
		err = fmt.Errorf("read %s: it has %d certificates, and should have no more than %d", file.Name, len(h.chain), h.of.most)
	}
	if err != nil {
		h.chain = file.LegibleCertificates(maxReported)
	}
	for _, certificate := range h.chain {
		facts.Certificates = append(facts.Certificates, certificates.Facts(file.Name, certificate))
	}
	if err != nil || h.of.ca == "" {
		return err
	}
	file = h.secret.file(h.of.ca)
	if h.ca, err = file.OneCertificate(); err == nil {
		facts.Certificates = append(facts.Certificates, certificates.Facts(file.Name, h.ca))
	}
	return err
}

// pair checks that the key belongs to the certificate.
func (h *stored) pair() error {
	_, _, err := certificates.Pair(h.secret.file(h.of.certificate), h.secret.file(h.of.key))
	return err
}

// ErrImmutable is the error if a Secret cannot be changed.
var ErrImmutable = errors.New("it is immutable; delete it and create it again without \"immutable: true\", with the same content")

// Ready returns an error if the certificates cannot be renewed. It checks all of their Secrets before one is
// written.
func (s *Store) Ready(ctx context.Context, of journal.Subject) error {
	_, all, err := s.read(ctx, of)
	if err != nil {
		return err
	}
	for _, h := range all {
		if immutable, _ := h.secret.object["immutable"].(bool); immutable {
			return fmt.Errorf("renew %s: %w", called(h.of.ref), ErrImmutable)
		}
	}
	return s.bundles[of.Name].ready(ctx, all, time.Now())
}

// Due reports whether certificates must be renewed, and why.
type Due func(facts journal.CertificateFacts) (why string, due bool)

// WhyNotRenewed returns a text about the certificates that are not renewed yet, or "". They are renewed if none is due
// and they belong together.
func (s *Store) WhyNotRenewed(ctx context.Context, of journal.Subject, due Due) (facts journal.CertificateFacts, lacks string, err error) {
	facts, all, err := s.read(ctx, of)
	switch {
	case err != nil:
		return facts, "", err
	case facts.Unreadable != "":
		return facts, facts.Unreadable, nil
	case facts.Foreign:
		return facts, "", nil // a customer has replaced it
	}
	if why, is := due(facts); is {
		return facts, why, nil
	}
	return facts, s.bundles[of.Name].inconsistency(all), nil
}

// Renew writes new certificates into the Secrets, each only if the Secret has not changed since it was read. It changes
// nothing if the certificates are renewed already, or if EKCO must not renew them.
func (s *Store) Renew(ctx context.Context, of journal.Subject, due Due) (journal.CertificateFacts, error) {
	facts, all, err := s.read(ctx, of)
	if err != nil {
		return facts, err
	}
	b := s.bundles[of.Name]
	switch _, is := due(facts); {
	case facts.Unreadable != "":
		return facts, fmt.Errorf("renew %s %s: %s", of.Kind, of.Name, facts.Unreadable)
	case facts.Foreign, !is && b.inconsistency(all) == "":
		return facts, nil
	}
	before := contents(all)
	if !s.attempts.resume(of.Name, all) {
		renewal := certificates.Renewal{Now: time.Now(), For: certificates.Year, NewKey: s.options.NewKey}
		if err := b.renew(all, renewal); err != nil {
			return facts, fmt.Errorf("renew %s %s: %w", of.Kind, of.Name, err)
		}
		s.attempts.keep(of.Name, &attempt{before: before, made: contents(all)})
	}
	for i, h := range all {
		if maps.Equal(h.content(), before[i]) {
			continue // an earlier attempt wrote it
		}
		content, err := h.secret.encode()
		if err != nil {
			return facts, err
		}
		if _, err := s.objects.ReplaceObject(ctx, h.of.ref, content); err != nil {
			return facts, err
		}
	}
	s.attempts.keep(of.Name, nil)
	return s.Read(ctx, of)
}
