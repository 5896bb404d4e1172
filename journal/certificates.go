package journal

import "time"

// ActionRenewCertificate renews all certificates of one subject, which are in Secrets. Its input is a
// [CertificateInput].
const ActionRenewCertificate ActionKind = "renew-certificate"

// The steps of renew-certificate. StepRenewCertificate writes the Secrets, and its outputs are a [CertificateRenewed].
// StepAwaitLoaded waits until servers that reload Secrets automatically have done so. EKCO then restarts the others.
const (
	StepRenewCertificate = "renew"
	StepAwaitLoaded      = "await-loaded"
	StepRestartServers   = "restart"
	StepAwaitServed      = "await-served"
)

// KindCertificate is the kind of subjects that are certificates. The Kubernetes API has no such kind.
const KindCertificate = "Certificate"

// The servers whose certificates are in Secrets. EKCO renews all certificates of one server together.
var (
	CertificateRegistry  = Subject{Kind: KindCertificate, Name: "registry"}
	CertificateKurlProxy = Subject{Kind: KindCertificate, Name: "kurl-proxy"}
	CertificateContour   = Subject{Kind: KindCertificate, Name: "contour"}
	// CertificateKubeletClient is the client certificate that KOTS shows to kubelets. It is a copy of the certificate
	// that API servers show to kubelets.
	CertificateKubeletClient = Subject{Kind: KindCertificate, Name: "kubelet-client"}
)

// CertificateFile returns the subject for a certificate in a file. The path is relative to the directory of the
// cluster's certificates.
func CertificateFile(path string) Subject {
	return Subject{Kind: KindCertificate, Name: "pki/" + path}
}

// Certificate has the public facts about a certificate. The only fact about its key is the kind of key.
type Certificate struct {
	// At is the certificate's location: "Secret kurl/registry-pki (registry.crt)", or a path.
	At      string `json:"at"`
	Subject string `json:"subject"`
	Issuer  string `json:"issuer"`
	// Names are subject alternative names. MoreNames is how many more the certificate has.
	Names     []string  `json:"names,omitempty"`
	MoreNames int       `json:"more_names,omitempty"`
	Usages    []string  `json:"usages,omitempty"`
	Key       string    `json:"key"`
	Serial    string    `json:"serial"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	CA        bool      `json:"ca,omitempty"`
	// Fingerprint is the SHA-256 hash of the certificate.
	Fingerprint string `json:"fingerprint"`
	// CannotRenew is set if the certificate is due and EKCO cannot renew it, or if its key is unusable.
	CannotRenew bool `json:"cannot_renew,omitempty"`
}

// CertificateFactsVersion is the version of facts that do not say whether a certificate is due. Earlier facts have no
// version.
const CertificateFactsVersion = 2

// CertificateFacts are the facts from which EKCO decides whether to renew the certificates of a subject.
type CertificateFacts struct {
	// Version is [CertificateFactsVersion], or 0 for facts with RecordedDue and RecordedWhy.
	Version      int           `json:"v,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	// Unreadable says which certificates cannot be read, or is "". Certificates has all others.
	Unreadable string `json:"unreadable,omitempty"`
	// Foreign is set if the certificate is the customer's own. EKCO never changes it.
	Foreign bool `json:"foreign,omitempty"`
	// Unrenewed is the reason why EKCO does not renew the certificate; empty if EKCO renews it.
	Unrenewed string `json:"unrenewed,omitempty"`
	// RecordedDue and RecordedWhy say in facts of version 0 whether and why a certificate had to be renewed.
	RecordedDue bool   `json:"due,omitempty"`
	RecordedWhy string `json:"why,omitempty"`
	// Original describes the original, if this certificate is a copy; otherwise it is nil.
	Original *CertificateOriginal `json:"original,omitempty"`
	// Within is the warning level, by the time until the first certificate expires.
	Within ExpiryWarning `json:"within,omitempty"`
	// On is the primary on which the certificates of a control plane are; nil for other certificates.
	On *Primary `json:"on,omitempty"`
}

// CertificateOriginal describes a certificate that has a copy in a Secret.
type CertificateOriginal struct {
	Fingerprint string    `json:"fingerprint"`
	NotAfter    time.Time `json:"not_after"`
	// Signed is set if the cluster's CA signed the original, CopySigned if the CA signed the copy.
	Signed     bool `json:"signed,omitempty"`
	CopySigned bool `json:"copy_signed,omitempty"`
}

// ExpiryWarning is a warning level: the remaining validity of a certificate is below this limit.
type ExpiryWarning string

// The remaining validities at which EKCO warns.
const (
	Within30Days ExpiryWarning = "30 days"
	Within7Days  ExpiryWarning = "7 days"
	Within1Day   ExpiryWarning = "1 day"
	Expired      ExpiryWarning = "expired"
)

// ExpiryWarningFor returns the warning level of an expiry time.
func ExpiryWarningFor(end, now time.Time) ExpiryWarning {
	const day = 24 * time.Hour
	switch left := end.Sub(now); {
	case left <= 0:
		return Expired
	case left <= day:
		return Within1Day
	case left <= 7*day:
		return Within7Days
	case left <= 30*day:
		return Within30Days
	}
	return ""
}

// Ends returns when the first of the certificates expires; zero if there are no certificates.
func (f CertificateFacts) Ends() (end time.Time) {
	for _, certificate := range f.Certificates {
		if end.IsZero() || certificate.NotAfter.Before(end) {
			end = certificate.NotAfter
		}
	}
	return end
}

// Changes returns 0, because certificates have no generation number. It implements fsm.ObjectFacts.
func (f CertificateFacts) Changes() int64 { return 0 }

// WithUID returns the facts unchanged, because certificates have no UID. It implements fsm.ObjectFacts.
func (f CertificateFacts) WithUID(string) CertificateFacts { return f }

// CertificateInput is the input of a renew-certificate.
type CertificateInput struct {
	// Ends is when the first certificate expires, according to the facts at the time of the request.
	Ends time.Time `json:"ends"`
	// TTL is the remaining validity below which a certificate is renewed, if a person gave one; zero means the
	// configured value.
	TTL Duration `json:"ttl,omitempty"`
}

// CertificateRenewed is the result of a renewal.
type CertificateRenewed struct {
	Certificates []Certificate `json:"certificates"`
	// Pods are the pods that may still serve the old certificate. EKCO restarts them.
	Pods []CertificatePod `json:"pods,omitempty"`
}

// CertificatePod is a pod that serves a certificate. It has no namespace, because the certificate determines it.
type CertificatePod struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}
