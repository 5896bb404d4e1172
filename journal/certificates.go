package journal

import "time"

// ActionRenewCertificate renews the certificates of a thing that are in Secrets. Its input is
// a [CertificateInput].
const ActionRenewCertificate ActionKind = "renew-certificate"

// Its steps. StepRenewCertificate writes the Secrets, and leaves a [CertificateRenewed].
// StepAwaitLoaded waits for those who read them again by themselves, before others are restarted.
const (
	StepRenewCertificate = "renew"
	StepAwaitLoaded      = "await-loaded"
	StepRestartServers   = "restart"
	StepAwaitServed      = "await-served"
)

// KindCertificate is the kind of what certificates are about, which is none of the Kubernetes
// API.
const KindCertificate = "Certificate"

// The certificates that are in Secrets, which EKCO renews together where one of them does not
// do without the others.
var (
	CertificateRegistry  = Subject{Kind: KindCertificate, Name: "registry"}
	CertificateKurlProxy = Subject{Kind: KindCertificate, Name: "kurl-proxy"}
	CertificateContour   = Subject{Kind: KindCertificate, Name: "contour"}
	// CertificateKubeletClient is that of KOTS, a copy of what kubelets know API servers by.
	CertificateKubeletClient = Subject{Kind: KindCertificate, Name: "kubelet-client"}
)

// CertificateFile is the certificate in a file of that path below the directory of the
// cluster's certificates.
func CertificateFile(path string) Subject {
	return Subject{Kind: KindCertificate, Name: "pki/" + path}
}

// Certificate is what may be told of a certificate. There is nothing of a key in it but its
// kind.
type Certificate struct {
	// At says where it is: "Secret kurl/registry-pki (registry.crt)", or a path.
	At      string `json:"at"`
	Subject string `json:"subject"`
	Issuer  string `json:"issuer"`
	// Names are the alternative ones, MoreNames how many there are besides.
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

// CertificateFactsVersion is that of facts without a verdict. Earlier ones have none.
const CertificateFactsVersion = 2

// CertificateFacts is what EKCO judges certificates by that belong together.
type CertificateFacts struct {
	// Version is [CertificateFactsVersion], or 0 if the verdict was recorded with the facts.
	Version      int           `json:"v,omitempty"`
	Certificates []Certificate `json:"certificates,omitempty"`
	// Unreadable says what is wrong with what there is; Certificates are then those that
	// could be read.
	Unreadable string `json:"unreadable,omitempty"`
	// Foreign: it is a customer's own, which is never touched.
	Foreign bool `json:"foreign,omitempty"`
	// Unrenewed says why nobody renews it; empty if EKCO does.
	Unrenewed string `json:"unrenewed,omitempty"`
	// RecordedDue and RecordedWhy are the verdict in facts of version 0: whether, and why, one of
	// the certificates had to be renewed.
	RecordedDue bool   `json:"due,omitempty"`
	RecordedWhy string `json:"why,omitempty"`
	// Original is what the certificate is a copy of, if it is one.
	Original *CertificateOriginal `json:"original,omitempty"`
	// Within says how near the end of its validity is, for those who are to be warned.
	Within CertificateWithin `json:"within,omitempty"`
	// On is the primary on which they are, for those of a control plane.
	On *Primary `json:"on,omitempty"`
}

// CertificateOriginal is a certificate of which there is a copy in a Secret.
type CertificateOriginal struct {
	Fingerprint string    `json:"fingerprint"`
	NotAfter    time.Time `json:"not_after"`
	// Signed and CopySigned are set if the cluster's CA signed the original, and the copy.
	Signed     bool `json:"signed,omitempty"`
	CopySigned bool `json:"copy_signed,omitempty"`
}

// CertificateWithin says that the end of the validity of a certificate is near.
type CertificateWithin string

// The ends that people are warned of.
const (
	Within30Days CertificateWithin = "30 days"
	Within7Days  CertificateWithin = "7 days"
	Within1Day   CertificateWithin = "1 day"
	Expired      CertificateWithin = "expired"
)

// WithinOf returns how near that end is.
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

// Changes is for machines of objects whose changes are counted: nobody counts these.
func (f CertificateFacts) Changes() int64 { return 0 }

// Of is for machines of objects with a UID, of which these have none.
func (f CertificateFacts) Of(string) CertificateFacts { return f }

// CertificateInput is the input of a renew-certificate.
type CertificateInput struct {
	// Ends is when the first of the certificates expires, as it was seen.
	Ends time.Time `json:"ends"`
	// TTL is what remains of the validity of what is to be renewed, where a person said so;
	// zero means what the settings say.
	TTL Duration `json:"ttl,omitempty"`
}

// CertificateRenewed is what the renewal leaves.
type CertificateRenewed struct {
	Certificates []Certificate `json:"certificates"`
	// Pods are those that may have the old certificate still, and are restarted for the new
	// one.
	Pods []CertificatePod `json:"pods,omitempty"`
}

// CertificatePod is a pod, in the namespace of those who serve the certificate.
type CertificatePod struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}
