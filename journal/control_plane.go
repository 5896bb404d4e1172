package journal

import (
	"strings"
	"time"
)

const (
	// ActionLookAtCertificates runs a program on a primary that reads the certificates of the control plane there. Its
	// input is a [PrimaryInput].
	ActionLookAtCertificates ActionKind = "look-at-certificates"
	// ActionRenewControlPlane runs a program on a primary that renews the certificates which are due, and restarts the
	// components that use them. Its input is a [PrimaryInput].
	ActionRenewControlPlane ActionKind = "renew-control-plane"
)

// The steps of these actions. StepLookAtCertificates and StepRenewControlPlane run a program on a node, and the node's
// name is added to their ids. Their outputs are a [CertificatesOnPrimary] and a [ControlPlaneRenewed].
const (
	StepLookAtCertificates = "look"
	StepNoteAttempt        = "note-attempt"
	StepRenewControlPlane  = "rotate"
)

const controlPlanePrefix = "control-plane/"

// ControlPlaneCertificates returns the subject for the certificates of the control plane on a node.
func ControlPlaneCertificates(node string) Subject {
	return Subject{Kind: KindCertificate, Name: controlPlanePrefix + node, Node: node}
}

// ControlPlaneOn returns the node of a subject from [ControlPlaneCertificates], and false for other subjects.
func ControlPlaneOn(subject Subject) (node string, is bool) {
	node, is = strings.CutPrefix(subject.Name, controlPlanePrefix)
	return node, is && subject.Kind == KindCertificate
}

const kubeletPrefix = "kubelet/"

// KubeletCertificate returns the subject for the serving certificate of a node's kubelet.
func KubeletCertificate(node string) Subject {
	return Subject{Kind: KindCertificate, Name: kubeletPrefix + node, Node: node}
}

// KubeletOn returns the node of a subject from [KubeletCertificate], and false for other subjects.
func KubeletOn(subject Subject) (node string, is bool) {
	node, is = strings.CutPrefix(subject.Name, kubeletPrefix)
	return node, is && subject.Kind == KindCertificate
}

// Primary has the facts about a control-plane node that decisions about its certificates need.
type Primary struct {
	// UID distinguishes the node from earlier nodes with the same name.
	UID     string `json:"uid"`
	Address string `json:"address,omitempty"`
	// Ready is set if a pod can run on the node.
	Ready bool `json:"ready,omitempty"`
	// ClockAhead is how far the node's clock is ahead of the API server's clock. It is zero unless the difference is so
	// large that EKCO cannot judge the validity of certificates.
	ClockAhead Duration `json:"clock_ahead,omitempty"`
	// Again says why EKCO must read the certificates again before the usual interval has passed, or is "".
	Again string `json:"again,omitempty"`
}

// PrimaryInput is the input of actions about a primary's certificates.
type PrimaryInput struct {
	UID     string `json:"uid"`
	Address string `json:"address,omitempty"`
	// Ends is when the first certificate expires, as far as EKCO knows; zero if unknown.
	Ends time.Time `json:"ends,omitzero"`
}

// CertificatesOnPrimary is what a program found on a primary.
type CertificatesOnPrimary struct {
	Certificates []Certificate `json:"certificates,omitempty"`
	// Problems describe certificates that are wrong or cannot be read.
	Problems []string `json:"problems,omitempty"`
	// Clock is the time by the node's clock.
	Clock time.Time `json:"clock"`
}

// ControlPlaneRenewed is the result of a renewal on a primary.
type ControlPlaneRenewed struct {
	// Rotated are the paths of the new certificates, Restarted the components that run again.
	Rotated   []string `json:"rotated,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
	// Failed describes the parts of the renewal that failed. All others are done.
	Failed []string `json:"failed,omitempty"`
	// Served has for each port the SHA-256 hash of the certificate that the port must serve.
	Served map[int]string `json:"served,omitempty"`
	// Components are the components that use one of the new certificates.
	Components []ControlPlaneComponent `json:"components,omitempty"`
}

// ControlPlaneComponent is a static pod of the control plane.
type ControlPlaneComponent struct {
	Name string `json:"name"`
	// Hash is the kubelet's hash of the manifest that EKCO saw last; empty if EKCO saw none.
	Hash string `json:"hash,omitempty"`
	// Since is when the newest of its certificates was created.
	Since time.Time `json:"since"`
}
