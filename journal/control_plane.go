package journal

import (
	"strings"
	"time"
)

const (
	// ActionLookAtCertificates reads the certificates of a control plane by a program on its primary. Its input is a
	// [PrimaryInput].
	ActionLookAtCertificates ActionKind = "look-at-certificates"
	// ActionRenewControlPlane renews those that are due by such a program, and restarts the components that have
	// them. Its input is a [PrimaryInput].
	ActionRenewControlPlane ActionKind = "renew-control-plane"
)

// Their steps. The node's name follows the ids of the first and last one, which run a program there. Their outputs
// are a [CertificatesOnPrimary] or a [ControlPlaneRenewed].
const (
	StepLookAtCertificates = "look"
	StepNoteAttempt        = "note-attempt"
	StepRenewControlPlane  = "rotate"
)

const controlPlane = "control-plane/"

// ControlPlaneCertificates are the certificates of the control plane on a node.
func ControlPlaneCertificates(node string) Subject {
	return Subject{Kind: KindCertificate, Name: controlPlane + node, Node: node}
}

// ControlPlaneOn returns the node if the subject has the certificates of its control plane.
func ControlPlaneOn(subject Subject) (node string, is bool) {
	node, is = strings.CutPrefix(subject.Name, controlPlane)
	return node, is && subject.Kind == KindCertificate
}

const kubelet = "kubelet/"

// KubeletCertificate is the serving certificate of a node's kubelet.
func KubeletCertificate(node string) Subject {
	return Subject{Kind: KindCertificate, Name: kubelet + node, Node: node}
}

// KubeletOn returns the node if the subject is its kubelet's certificate.
func KubeletOn(subject Subject) (node string, is bool) {
	node, is = strings.CutPrefix(subject.Name, kubelet)
	return node, is && subject.Kind == KindCertificate
}

// Primary is a node with a control plane, reduced to what its certificates need.
type Primary struct {
	// UID distinguishes the node from earlier ones with its name.
	UID     string `json:"uid"`
	Address string `json:"address,omitempty"`
	// Ready is set if a pod can run there.
	Ready bool `json:"ready,omitempty"`
	// ClockAhead is how far the node's clock is ahead of the API server's, if the difference is too large for judging
	// certificates.
	ClockAhead Duration `json:"clock_ahead,omitempty"`
	// Again says why a program is to read the certificates before the next interval, or "".
	Again string `json:"again,omitempty"`
}

// PrimaryInput is the input of actions about a primary's certificates.
type PrimaryInput struct {
	UID     string `json:"uid"`
	Address string `json:"address,omitempty"`
	// Ends is when EKCO last saw the first certificate expire; zero if unknown.
	Ends time.Time `json:"ends,omitzero"`
}

// CertificatesOnPrimary is what a program found on a primary.
type CertificatesOnPrimary struct {
	Certificates []Certificate `json:"certificates,omitempty"`
	// Problems say what is wrong with which of them.
	Problems []string `json:"problems,omitempty"`
	// Clock is the node's time.
	Clock time.Time `json:"clock"`
}

// ControlPlaneRenewed is what a program renewed on a primary.
type ControlPlaneRenewed struct {
	// Rotated are the paths of the new certificates, Restarted the components that run again.
	Rotated   []string `json:"rotated,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
	// Failed says what failed. Everything else was done.
	Failed []string `json:"failed,omitempty"`
	// Served are the SHA-256 of the certificates that must be served, by port.
	Served map[int]string `json:"served,omitempty"`
	// Components are those that have one of the new certificates.
	Components []ControlPlaneComponent `json:"components,omitempty"`
}

// ControlPlaneComponent is a static pod of the control plane.
type ControlPlaneComponent struct {
	Name string `json:"name"`
	// Hash is the kubelet's hash of the manifest that was seen last; empty if none was.
	Hash string `json:"hash,omitempty"`
	// Since is when the newest of its certificates was created.
	Since time.Time `json:"since"`
}
