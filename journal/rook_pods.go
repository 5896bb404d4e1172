package journal

import (
	"slices"
	"strings"
)

// The kinds of action that change what Rook gives its pods. The input of each is a
// [RookPodsInput].
const (
	// ActionSetCSIResources sets what the pods of Ceph's CSI drivers ask for and may use.
	ActionSetCSIResources ActionKind = "set-csi-resources"
	// ActionSpreadMDS has the MDS of a filesystem run on different hosts.
	ActionSpreadMDS ActionKind = "spread-mds"
	// ActionSetPriorityClass gives the pods of a workload of Rook a priority class.
	ActionSetPriorityClass ActionKind = "set-priority-class"
)

// Their steps. StepSetRookPods is the change, and leaves the [RookPodsFacts] of the object
// as it is then.
const (
	StepSetRookPods    = "set"
	StepAwaitMDSHosts  = "await-hosts"
	StepEnsurePriority = "ensure-class"
	StepAwaitRolledOut = "await-rollout"
)

// RookOperatorConfig is the ConfigMap of Rook's operator, with the resources of the pods of
// Ceph's CSI drivers.
var RookOperatorConfig = Subject{Kind: "ConfigMap", Name: rookNamespace + "/rook-ceph-operator-config"}

// KindCephMDS is the kind of what serves a filesystem, which is none of the Kubernetes API.
const KindCephMDS = "CephMDS"

// RookMDS are the MDS of the CephFilesystem of that name, called as Rook calls their
// Deployments. Their identity is [MDSOf] the filesystem's: the CephFilesystem itself is
// another thing.
func RookMDS(filesystem string) Subject {
	return Subject{Kind: KindCephMDS, Name: rookNamespace + "/" + mdsPrefix + filesystem}
}

// MDSFilesystem returns the name of the CephFilesystem that the MDS are of.
func MDSFilesystem(mds Subject) string {
	return strings.TrimPrefix(mds.Name, rookNamespace+"/"+mdsPrefix)
}

const (
	mdsPrefix = "rook-ceph-mds-"
	mdsOf     = "mds-of-"
)

// MDSOf is the identity of the MDS of the filesystem with that UID.
func MDSOf(filesystem string) string { return mdsOf + filesystem }

// The kinds of workload that Rook's daemons are.
const (
	KindDeployment = "Deployment"
	KindDaemonSet  = "DaemonSet"
)

// RookWorkload is the workload of that kind and name in Rook's namespace.
func RookWorkload(kind, name string) Subject {
	return Subject{Kind: kind, Name: rookNamespace + "/" + name}
}

// RookAgent is the DaemonSet of the agent that Rook had before it used CSI.
var RookAgent = RookWorkload(KindDaemonSet, "rook-ceph-agent")

// RookPodsFacts is what EKCO judges by what Rook gives its pods.
type RookPodsFacts struct {
	UID string `json:"-"`
	// Generation counts the changes of what is asked of the object, whoever made them; zero
	// for a ConfigMap, of which nobody counts them.
	Generation int64 `json:"generation,omitempty"`
	// Version is Rook's, for the ConfigMap alone; empty where it is not known, for which
	// Unversioned is the reason.
	Version     string `json:"version,omitempty"`
	Unversioned string `json:"unversioned,omitempty"`
	// Differing are the keys of the ConfigMap that say other resources than EKCO sets, or
	// none, in order; none with a Rook that does not know them all.
	Differing []string `json:"differing,omitempty"`
	// OneNode is set when the MDS are placed as kURL does on a single node, where they may
	// share a host.
	OneNode bool `json:"one_node,omitempty"`
	// Spread is set when they are placed as EKCO does, each on a host of its own. Where neither
	// is, somebody else has placed them.
	Spread bool `json:"spread,omitempty"`
	// Hosts are the nodes on which the MDS run and are ready, in order.
	Hosts []string `json:"hosts,omitempty"`
	// Daemon is what a workload runs, such as "osd".
	Daemon string `json:"daemon,omitempty"`
	// Priority is the priority class of a workload's pods, empty for none.
	Priority string `json:"priority,omitempty"`
}

// Changes counts the changes of what is asked of the object.
func (f RookPodsFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the object with that UID.
func (f RookPodsFacts) Of(uid string) RookPodsFacts {
	f.UID = uid
	return f
}

// RookPodsInput is what one of the actions is asked for with; each uses its own field.
type RookPodsInput struct {
	// Keys of the ConfigMap are to be set.
	Keys []string `json:"keys,omitempty"`
	// Nodes is how many nodes the change needs.
	Nodes int `json:"nodes,omitempty"`
	// Class is the priority class that is to be given, and Daemon what the workload runs.
	Class  string `json:"class,omitempty"`
	Daemon string `json:"daemon,omitempty"`
}

// Lacks says what of the input the thing of a kind does not have yet, or "".
func (i RookPodsInput) Lacks(kind string, live RookPodsFacts) string {
	differ := i.differ(live)
	switch {
	case kind == RookOperatorConfig.Kind && len(differ) > 0:
		return strings.Join(differ, ", ") + " differ"
	case kind == RookOperatorConfig.Kind:
	case kind == KindCephMDS && !live.Spread:
		return "the MDS may share a host"
	case kind == KindCephMDS:
	case live.Priority != i.Class:
		return "its pods do not have priority class " + i.Class
	}
	return ""
}

// Moved says what somebody else has made of the thing, so that it is not EKCO's to change any
// more, or "". Of a ConfigMap's keys it is EKCO's whatever they say.
func (i RookPodsInput) Moved(kind string, live RookPodsFacts) string {
	switch {
	case kind == RookOperatorConfig.Kind:
	case kind == KindCephMDS && !live.OneNode && !live.Spread:
		return "the MDS are placed otherwise than kURL does on a single node"
	case kind == KindCephMDS:
	case live.Priority != "" && live.Priority != i.Class:
		return "its pods have priority class " + live.Priority
	}
	return ""
}

// differ returns which of the keys are not as they shall be.
func (i RookPodsInput) differ(live RookPodsFacts) (differ []string) {
	for _, key := range i.Keys {
		if slices.Contains(live.Differing, key) {
			differ = append(differ, key)
		}
	}
	return differ
}
