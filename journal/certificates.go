package journal

import "time"

// ActionRenewCertificate renews certificates in Secrets that belong together. Its input is a [CertificateInput].
const ActionRenewCertificate ActionKind = "renew-certificate"

// Its steps. StepRenewCertificate writes the Secrets; its outputs are a [CertificateRenewed]. StepAwaitLoaded waits for
// servers that read the Secrets again automatically, before EKCO restarts the others.
const (
	StepRenewCertificate = "renew"
	StepAwaitLoaded      = "await-loaded"
	StepRestartServers   = "restart"
	StepAwaitServed      = "await-served"
)

// KindCertificate is the kind of certificates as subjects. It is not a kind of the Kubernetes API.
const KindCertificate = "Certificate"

// The certificates in Secrets, by server. EKCO renews those of one subject together.
var (
	CertificateRegistry  = Subject{Kind: KindCertificate, Name: "registry"}
	CertificateKurlProxy = Subject{Kind: KindCertificate, Name: "kurl-proxy"}
	CertificateContour   = Subject{Kind: KindCertificate, Name: "contour"}
	// CertificateKubeletClient is KOTS's client certificate for kubelets, a copy of the API servers'.
	CertificateKubeletClient = Subject{Kind: KindCertificate, Name: "kubelet-client"}
)

// CertificateFile is the certificate in a file. The path is relative to the directory of the cluster's certificates.
func CertificateFile(path string) Subject {
	return Subject{Kind: KindCertificate, Name: "pki/" + path}
}

// Certificate has the public facts of a certificate. Of its key, it has only the kind.
type Certificate struct {
	// At is the certificate's location: "Secret kurl/registry-pki (registry.crt)", or a path.
	At      string `json:"at"`
	Subject string `json:"subject"`
	Issuer  string `json:"issuer"`
	// Names are the subject alternative names, MoreNames the number of those that are not listed.
	Names     []string  `json:"names,omitempty"`
	MoreNames int       `json:"more_names,omitempty"`
	Usages    []string  `json:"usages,omitempty"`
	Key       string    `json:"key"`
	Serial    string    `json:"serial"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	CA        bool      `json:"ca,omitempty"`
	// Fingerprint is the SHA-256 of the certificate.
	Fingerprint string `json:"fingerprint"`
	// CannotRenew is set if the certificate is due and EKCO cannot renew it, or if its key is unusable.
	CannotRenew bool `json:"cannot_renew,omitempty"`
}

// CertificateFactsVersion is the version of facts that do not contain a verdict. Earlier facts have no version.
const CertificateFactsVersion = 2

// CertificateFacts are the facts by which EKCO judges certificates that belong together.
type CertificateFacts struct {
	// Version is [CertificateFactsVersion], or 0 if the verdict was recorded with the facts.
	Version      int           `json:"v,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	// Unreadable says which certificates cannot be read; Certificates then has the readable ones.
	Unreadable string `json:"unreadable,omitempty"`
	// Foreign is set if the certificate is the customer's own. EKCO never changes it.
	Foreign bool `json:"foreign,omitempty"`
	// Unrenewed is the reason why EKCO does not renew it; empty if EKCO does.
	Unrenewed string `json:"unrenewed,omitempty"`
	// RecordedDue and RecordedWhy are the verdict in facts of version 0: whether and why a certificate had to be
	// renewed.
	RecordedDue bool   `json:"due,omitempty"`
	RecordedWhy string `json:"why,omitempty"`
	// Original is the certificate of which this is a copy, nil if it is none.
	Original *CertificateOriginal `json:"original,omitempty"`
	// Within is the warning level: how soon the first certificate expires.
	Within CertificateWithin `json:"within,omitempty"`
	// On is the primary of the certificates of a control plane.
	On *Primary `json:"on,omitempty"`
}

// CertificateOriginal is a certificate with a copy in a Secret.
type CertificateOriginal struct {
	Fingerprint string    `json:"fingerprint"`
	NotAfter    time.Time `json:"not_after"`
	// Signed and CopySigned are set if the cluster's CA signed the original, and the copy.
	Signed     bool `json:"signed,omitempty"`
	CopySigned bool `json:"copy_signed,omitempty"`
}

// CertificateWithin says that a certificate expires soon.
type CertificateWithin string

// The remaining validities at which EKCO warns.
const (
	Within30Days CertificateWithin = "30 days"
	Within7Days  CertificateWithin = "7 days"
	Within1Day   CertificateWithin = "1 day"
	Expired      CertificateWithin = "expired"
)

// WithinOf returns the warning level of an expiry time.
func WithinOf(end, now time.Time) CertificateWithin {
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

// Ends returns when the first of the certificates expires, zero if there is none.
func (f CertificateFacts) Ends() (end time.Time) {
	for _, certificate := range f.Certificates {
		if end.IsZero() || certificate.NotAfter.Before(end) {
			end = certificate.NotAfter
		}
	}
	return end
}

// Changes implements an interface for objects with a generation number. Certificates have none.
func (f CertificateFacts) Changes() int64 { return 0 }

// Of implements an interface for objects with a UID. Certificates have none.
func (f CertificateFacts) Of(string) CertificateFacts { return f }

// CertificateInput is the input of a renew-certificate.
type CertificateInput struct {
	// Ends is when the first of the certificates expired according to the facts at the request.
	Ends time.Time `json:"ends"`
	// TTL is the remaining validity below which a certificate is renewed, if a person requested one; zero means the
	// configured one.
	TTL Duration `json:"ttl,omitempty"`
}

// CertificateRenewed is the result of a renewal.
type CertificateRenewed struct {
	Certificates []Certificate `json:"certificates"`
	// Pods are the pods that may still have the old certificate. EKCO restarts them.
	Pods []CertificatePod `json:"pods,omitempty"`
}

// CertificatePod is a pod that serves the certificate. The certificate determines its namespace.
type CertificatePod struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}
