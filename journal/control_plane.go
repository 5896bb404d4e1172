package journal

import (
	"strings"
	"time"
)

const (
	// ActionLookAtCertificates has a program on a primary read the certificates of its
	// control plane. Its input is a [PrimaryInput].
	ActionLookAtCertificates ActionKind = "look-at-certificates"
	// ActionRenewControlPlane has one renew those that are due, and restart who has them. Its
	// input is a [PrimaryInput].
	ActionRenewControlPlane ActionKind = "renew-control-plane"
)

// Their steps. The first two are followed by the node's name, since a program does them there;
// they leave a result that is a [CertificatesOnPrimary], or a [ControlPlaneRenewed].
const (
	StepLookAtCertificates = "look"
	StepNoteAttempt        = "note-attempt"
	StepRenewControlPlane  = "rotate"
)

const controlPlane = "control-plane/"

// ControlPlaneCertificates are those of the control plane on a node.
func ControlPlaneCertificates(node string) Subject {
	return Subject{Kind: KindCertificate, Name: controlPlane + node, Node: node}
}

// ControlPlaneOn returns the node whose control plane's certificates the subject is.
func ControlPlaneOn(subject Subject) (node string, is bool) {
	node, is = strings.CutPrefix(subject.Name, controlPlane)
	return node, is && subject.Kind == KindCertificate
}

const kubelet = "kubelet/"

// KubeletCertificate is the one that the kubelet of a node serves.
func KubeletCertificate(node string) Subject {
	return Subject{Kind: KindCertificate, Name: kubelet + node, Node: node}
}

// KubeletOn returns the node whose kubelet's certificate the subject is.
func KubeletOn(subject Subject) (node string, is bool) {
	node, is = strings.CutPrefix(subject.Name, kubelet)
	return node, is && subject.Kind == KindCertificate
}

// Primary is a node with a control plane, as far as its certificates go.
type Primary struct {
	// UID tells the node from others that had its name.
	UID     string `json:"uid"`
	Address string `json:"address,omitempty"`
	// Ready is set if a pod can do something there.
	Ready bool `json:"ready,omitempty"`
	// ClockAhead is how far the node's clock is ahead of the API server's, if they are too far apart to
	// judge certificates by.
	ClockAhead Duration `json:"clock_ahead,omitempty"`
	// Again says why a program is to look before its time, or "".
	Again string `json:"again,omitempty"`
}

// PrimaryInput is the input of actions about a primary's certificates.
type PrimaryInput struct {
	UID     string `json:"uid"`
	Address string `json:"address,omitempty"`
	// Ends is when the first of the certificates expires, as it was seen; zero if nobody has.
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

// ControlPlaneRenewed is what a program has renewed on a primary.
type ControlPlaneRenewed struct {
	// Rotated are the paths of those that are new, Restarted the components that came back.
	Rotated   []string `json:"rotated,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
	// Failed says what could not be done. All else was done.
	Failed []string `json:"failed,omitempty"`
	// Served are the SHA-256 of the certificates that are to be served, by port.
	Served map[int]string `json:"served,omitempty"`
	// Components are those that have one of them.
	Components []ControlPlaneComponent `json:"components,omitempty"`
}

// ControlPlaneComponent is a static pod of the control plane.
type ControlPlaneComponent struct {
	Name string `json:"name"`
	// Hash is the kubelet's, of the manifest as it was seen last; empty if nothing was.
	Hash string `json:"hash,omitempty"`
	// Since is when the newest of its certificates was made.
	Since time.Time `json:"since"`
}
