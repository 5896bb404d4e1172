package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const (
	// ActionUpdateLoadBalancer updates the list of primaries of a node's load balancer, without a restart.
	ActionUpdateLoadBalancer ActionKind = "update-load-balancer"
	// ActionRestartLoadBalancer also changes the load balancer's manifest, so that the kubelet restarts it.
	ActionRestartLoadBalancer ActionKind = "restart-load-balancer"
	// ActionNoteLoadBalancers writes the names of the nodes with an up-to-date load balancer into a ConfigMap.
	ActionNoteLoadBalancers ActionKind = "note-load-balancers"
)

// The steps of update-load-balancer and restart-load-balancer.
const (
	// StepCheckLoadBalancer checks on the node that HAProxy's image exists and accepts the configuration.
	StepCheckLoadBalancer = "check"
	// StepWriteLoadBalancer writes the files on the node. Its outputs are a [LoadBalancerOnNode].
	StepWriteLoadBalancer = "write"
	// StepReloadLoadBalancer waits until HAProxy uses the new files. Its outputs are a [LoadBalancerRuns].
	StepReloadLoadBalancer = "reload"
	// StepReachLoadBalancer connects to an API server through HAProxy. Its outputs are a [LoadBalancerReached].
	StepReachLoadBalancer = "reach"
)

// StepNoteLoadBalancers writes the ConfigMap in a note-load-balancers. Its outputs are the [LoadBalancerListFacts].
const StepNoteLoadBalancers = "note"

// KindLoadBalancer is the kind of the subject for a node's load balancer. The subject has the node's name.
const KindLoadBalancer = "LoadBalancer"

// LoadBalancer returns the subject for the load balancer of a node.
func LoadBalancer(node string) Subject {
	return Subject{Kind: KindLoadBalancer, Name: node, Node: node}
}

// LoadBalancerFacts are the facts about a node's load balancer that decisions use.
type LoadBalancerFacts struct {
	// NodeUID distinguishes the node from earlier nodes with the same name.
	NodeUID string `json:"node_uid"`
	// Address is the address at which other nodes reach the node; empty if it has none.
	Address string `json:"address,omitempty"`
	Primary bool   `json:"primary,omitempty"`
	// Ready is set if a pod can run on the node.
	Ready bool `json:"ready,omitempty"`
	// Started is when HAProxy was started on the node; zero if it does not run.
	Started time.Time `json:"started,omitzero"`
	// Asked is set if EKCO tried to connect to an API server at the node's addresses. EKCO does this for present and
	// former primaries.
	Asked bool `json:"asked,omitempty"`
	// Answers has the first address whose API server has the node's name in its certificate. If there is none, Answers
	// has all addresses, including old addresses, whose API server has no node's name in its certificate.
	Answers []string `json:"answers,omitempty"`
}

// LoadBalancerRuns is the output of [StepReloadLoadBalancer]: the time at which HAProxy was started.
type LoadBalancerRuns struct {
	Started time.Time `json:"started,omitzero"`
}

// LoadBalancerReached is the answer of an API server to a request through HAProxy.
type LoadBalancerReached struct {
	// Status is the HTTP status. The request has no credentials.
	Status int `json:"status,omitempty"`
}

// KindLoadBalancerList is the kind of the subject for the ConfigMap that lists the nodes whose load balancer is up to
// date. Installers delete this ConfigMap to make EKCO write all files again.
const KindLoadBalancerList = "LoadBalancerList"

// LoadBalancerList returns the subject for the ConfigMap in a namespace.
func LoadBalancerList(namespace string) Subject {
	return Subject{Kind: KindLoadBalancerList, Name: namespace + "/update-internallb"}
}

// LoadBalancerListFacts are the facts of that ConfigMap.
type LoadBalancerListFacts struct {
	// UID is empty if the ConfigMap does not exist.
	UID string `json:"uid,omitempty"`
	// Sum is a checksum of the list; empty for an empty list.
	Sum string `json:"sum,omitempty"`
}

// SumOfLoadBalancers returns the checksum of a list for [LoadBalancerListFacts].
func SumOfLoadBalancers(list string) string {
	if list == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(list))
	return hex.EncodeToString(sum[:8])
}

// LoadBalancerListInput is the wanted content of the ConfigMap.
type LoadBalancerListInput struct {
	// UID is the UID of the ConfigMap to change; if it is empty, EKCO creates the ConfigMap.
	UID  string `json:"uid,omitempty"`
	List string `json:"list"`
}

// LoadBalancerInput is the wanted state of a node's load balancer.
type LoadBalancerInput struct {
	NodeUID string `json:"node_uid"`
	Address string `json:"address,omitempty"`
	// Primaries are the addresses to which the load balancer forwards, in the order of the configuration.
	Primaries []string `json:"primaries"`
	// Image is the image of HAProxy. Layout identifies the format in which EKCO writes the files.
	Image  string `json:"image"`
	Layout string `json:"layout"`
	// CheckWith is an image of HAProxy. EKCO writes the configuration only if this HAProxy accepts it. Empty means no
	// check.
	CheckWith string `json:"check_with,omitempty"`
	// Trial is set if the task on the node restores the former configuration unless EKCO confirms the new one in time.
	Trial bool `json:"trial,omitempty"`
	// Version is the version of the manifest file; empty in requests of earlier versions of EKCO.
	Version string `json:"version,omitempty"`
}

// LoadBalancerOnNode is the state of the files on a node.
type LoadBalancerOnNode struct {
	// Backend is the name that HAProxy's log shows for this configuration. Each configuration has another name.
	Backend string `json:"backend"`
	// Image and Version are the values in the manifest; Image is empty if there is no manifest.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Config and Manifest are set if EKCO wrote that file, because it was out of date.
	Config   bool `json:"config,omitempty"`
	Manifest bool `json:"manifest,omitempty"`
}
