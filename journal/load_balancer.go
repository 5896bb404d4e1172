package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const (
	// ActionUpdateLoadBalancer updates the primaries in the load balancer of a node, without a restart.
	ActionUpdateLoadBalancer ActionKind = "update-load-balancer"
	// ActionRestartLoadBalancer also changes its manifest, so the kubelet restarts it.
	ActionRestartLoadBalancer ActionKind = "restart-load-balancer"
	// ActionNoteLoadBalancers lists the nodes with an up-to-date load balancer in a ConfigMap.
	ActionNoteLoadBalancers ActionKind = "note-load-balancers"
)

// Their steps.
const (
	// StepCheckLoadBalancer checks on the node that HAProxy's image exists and accepts the configuration.
	StepCheckLoadBalancer = "check"
	// StepWriteLoadBalancer writes the files on the node. Its outputs are a [LoadBalancerOnNode].
	StepWriteLoadBalancer = "write"
	// StepReloadLoadBalancer waits until HAProxy runs with the files. Its outputs are a [LoadBalancerRuns].
	StepReloadLoadBalancer = "reload"
	// StepReachLoadBalancer connects to an API server through HAProxy. Its outputs are a [LoadBalancerReached].
	StepReachLoadBalancer = "reach"
)

// StepNoteLoadBalancers writes the ConfigMap. Its outputs are the [LoadBalancerListFacts].
const StepNoteLoadBalancers = "note"

// KindLoadBalancer is the kind of a node's load balancer, which has the node's name.
const KindLoadBalancer = "LoadBalancer"

// LoadBalancer is the load balancer of a node.
func LoadBalancer(node string) Subject {
	return Subject{Kind: KindLoadBalancer, Name: node, Node: node}
}

// LoadBalancerFacts is what EKCO judges a node's load balancer by.
type LoadBalancerFacts struct {
	// NodeUID distinguishes the node from earlier ones with its name.
	NodeUID string `json:"node_uid"`
	// Address is the one at which others reach it; empty if it has none.
	Address string `json:"address,omitempty"`
	Primary bool   `json:"primary,omitempty"`
	// Ready is set if a pod can run there.
	Ready bool `json:"ready,omitempty"`
	// Started is when HAProxy was started there; zero if it does not run.
	Started time.Time `json:"started,omitzero"`
	// Asked is set if EKCO connected to the API server of the node, as on present and former primaries. Answers has
	// the first of the node's addresses at which an API server answered with the node's name in its certificate;
	// otherwise all of its present and former addresses at which one without any node's name answered.
	Asked   bool     `json:"asked,omitempty"`
	Answers []string `json:"answers,omitempty"`
}

// LoadBalancerRuns says since when HAProxy runs.
type LoadBalancerRuns struct {
	Started time.Time `json:"started,omitzero"`
}

// LoadBalancerReached is an API server's answer through HAProxy.
type LoadBalancerReached struct {
	// Status is the HTTP status; the request was anonymous.
	Status int `json:"status,omitempty"`
}

// KindLoadBalancerList is the kind of the ConfigMap with the nodes whose load balancer is up to date. Installers
// delete it to make EKCO write all files again.
const KindLoadBalancerList = "LoadBalancerList"

// LoadBalancerList is the ConfigMap of a namespace.
func LoadBalancerList(namespace string) Subject {
	return Subject{Kind: KindLoadBalancerList, Name: namespace + "/update-internallb"}
}

// LoadBalancerListFacts are the facts of that ConfigMap.
type LoadBalancerListFacts struct {
	// UID is empty if there is none.
	UID string `json:"uid,omitempty"`
	// Sum is a checksum of the list; empty for an empty one.
	Sum string `json:"sum,omitempty"`
}

// SumOfLoadBalancers is the checksum of a list.
func SumOfLoadBalancers(list string) string {
	if list == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(list))
	return hex.EncodeToString(sum[:8])
}

// LoadBalancerListInput is the wanted content of the ConfigMap.
type LoadBalancerListInput struct {
	// UID is that of the ConfigMap; empty to create one.
	UID  string `json:"uid,omitempty"`
	List string `json:"list"`
}

// LoadBalancerInput is the wanted state of a node's load balancer.
type LoadBalancerInput struct {
	NodeUID string `json:"node_uid"`
	Address string `json:"address,omitempty"`
	// Primaries are the addresses that it forwards to, in their order.
	Primaries []string `json:"primaries"`
	// Image is HAProxy's. Layout identifies how EKCO writes the files.
	Image  string `json:"image"`
	Layout string `json:"layout"`
	// CheckWith is the HAProxy image that must accept the configuration before it is written; empty for no
	// check.
	CheckWith string `json:"check_with,omitempty"`
	// Trial is set if the task restores the former configuration unless EKCO confirms that HAProxy works with the new one.
	Trial bool `json:"trial,omitempty"`
	// Version is the file version of the manifest; requests of earlier versions of EKCO have none.
	Version string `json:"version,omitempty"`
}

// LoadBalancerOnNode is the state of the files on a node.
type LoadBalancerOnNode struct {
	// Backend is the unique name of the configuration in HAProxy's log.
	Backend string `json:"backend"`
	// Image and Version are those of the manifest; Image is empty if there is none.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Config and Manifest are set if the file was out of date, and was written.
	Config   bool `json:"config,omitempty"`
	Manifest bool `json:"manifest,omitempty"`
}
