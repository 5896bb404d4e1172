package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const (
	// ActionUpdateLoadBalancer gives the load balancer of a node the primaries, without a
	// restart.
	ActionUpdateLoadBalancer ActionKind = "update-load-balancer"
	// ActionRestartLoadBalancer gives it another manifest too, for which the kubelet restarts it.
	ActionRestartLoadBalancer ActionKind = "restart-load-balancer"
	// ActionNoteLoadBalancers notes in a ConfigMap which nodes have theirs in step.
	ActionNoteLoadBalancers ActionKind = "note-load-balancers"
)

// Their steps.
const (
	// StepCheckLoadBalancer checks on the node that HAProxy's image is there and accepts the configuration.
	StepCheckLoadBalancer = "check"
	// StepWriteLoadBalancer writes the files on the node. It leaves a [LoadBalancerOnNode].
	StepWriteLoadBalancer = "write"
	// StepReloadLoadBalancer waits until HAProxy runs with the files. It leaves a [LoadBalancerRuns].
	StepReloadLoadBalancer = "reload"
	// StepReachLoadBalancer reaches an API server through HAProxy. It leaves a [LoadBalancerReached].
	StepReachLoadBalancer = "reach"
)

// StepNoteLoadBalancers writes the ConfigMap, and leaves its [LoadBalancerListFacts].
const StepNoteLoadBalancers = "note"

// KindLoadBalancer is the kind of the load balancer of a node, which is called like the node.
const KindLoadBalancer = "LoadBalancer"

// LoadBalancer is that of a node.
func LoadBalancer(node string) Subject {
	return Subject{Kind: KindLoadBalancer, Name: node, Node: node}
}

// LoadBalancerFacts is what EKCO judges by what is to be on a node.
type LoadBalancerFacts struct {
	// NodeUID tells the node from others that had its name.
	NodeUID string `json:"node_uid"`
	// Address is by which others reach it; empty if it has none.
	Address string `json:"address,omitempty"`
	Primary bool   `json:"primary,omitempty"`
	// Ready is set if a pod can do something there.
	Ready bool `json:"ready,omitempty"`
	// Started is when HAProxy was started there; zero if it does not run.
	Started time.Time `json:"started,omitzero"`
	// Asked is set if the API server of the node was asked, as on nodes that are or were primaries. Answers has the
	// first of the node's addresses at which an API server answered with the node's name in its certificate, or else
	// all of its present and former addresses at which one without the name of any node did.
	Asked   bool     `json:"asked,omitempty"`
	Answers []string `json:"answers,omitempty"`
}

// LoadBalancerRuns is what is left of HAProxy that was seen to run.
type LoadBalancerRuns struct {
	Started time.Time `json:"started,omitzero"`
}

// LoadBalancerReached is an API server's answer through HAProxy.
type LoadBalancerReached struct {
	// Status is the HTTP status; the request was anonymous.
	Status int `json:"status,omitempty"`
}

// KindLoadBalancerList is the kind of the ConfigMap that says which nodes have their load balancer in
// step. Installers delete it to have everything written again.
const KindLoadBalancerList = "LoadBalancerList"

// LoadBalancerList is that of a namespace.
func LoadBalancerList(namespace string) Subject {
	return Subject{Kind: KindLoadBalancerList, Name: namespace + "/update-internallb"}
}

// LoadBalancerListFacts is what is known of that ConfigMap.
type LoadBalancerListFacts struct {
	// UID is empty if there is none.
	UID string `json:"uid,omitempty"`
	// Sum tells the list from others; empty for an empty one.
	Sum string `json:"sum,omitempty"`
}

// SumOfLoadBalancers is that of a list.
func SumOfLoadBalancers(list string) string {
	if list == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(list))
	return hex.EncodeToString(sum[:8])
}

// LoadBalancerListInput is what the ConfigMap shall say.
type LoadBalancerListInput struct {
	// UID is that of the ConfigMap; empty if there is none, and one is to be made.
	UID  string `json:"uid,omitempty"`
	List string `json:"list"`
}

// LoadBalancerInput is what the load balancer of a node shall be.
type LoadBalancerInput struct {
	NodeUID string `json:"node_uid"`
	Address string `json:"address,omitempty"`
	// Primaries are the addresses that it leads to, in their order.
	Primaries []string `json:"primaries"`
	// Image is HAProxy's. Layout tells how EKCO writes the files.
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

// LoadBalancerOnNode is what a program has left on a node.
type LoadBalancerOnNode struct {
	// Backend tells the configuration from all others, in HAProxy's log.
	Backend string `json:"backend"`
	// Image and Version are what the manifest has by now; Image is empty if there is none.
	Image   string `json:"image,omitempty"`
	Version string `json:"version,omitempty"`
	// Config and Manifest are set if the file was not as it shall be, and was written.
	Config   bool `json:"config,omitempty"`
	Manifest bool `json:"manifest,omitempty"`
}
