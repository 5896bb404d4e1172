package journal

import (
	"slices"
	"strings"
)

// The kinds of action that change the settings of Rook's pods. The input of each is a [RookPodsInput].
const (
	// ActionSetCSIResources sets the resource requests and limits of the pods of Ceph's CSI drivers.
	ActionSetCSIResources ActionKind = "set-csi-resources"
	// ActionSpreadMDS spreads the MDS of a filesystem over different hosts.
	ActionSpreadMDS ActionKind = "spread-mds"
	// ActionSetPriorityClass sets the priority class of the pods of one of Rook's workloads.
	ActionSetPriorityClass ActionKind = "set-priority-class"
)

// Their steps. StepSetRookPods is the change; its outputs are the [RookPodsFacts] of the object after it.
const (
	StepSetRookPods    = "set"
	StepAwaitMDSHosts  = "await-hosts"
	StepEnsurePriority = "ensure-class"
	StepAwaitRolledOut = "await-rollout"
)

// RookOperatorConfig is the ConfigMap of Rook's operator, with the resources of the pods of Ceph's CSI drivers.
var RookOperatorConfig = Subject{Kind: "ConfigMap", Name: rookNamespace + "/rook-ceph-operator-config"}

// KindCephMDS is the kind of a filesystem's MDS, which is not a Kubernetes kind.
const KindCephMDS = "CephMDS"

// RookMDS are the MDS of the CephFilesystem of that name, with the name of their Deployments without the suffix.
// Their UID is [MDSOf] the filesystem's, since the CephFilesystem itself is another thing.
func RookMDS(filesystem string) Subject {
	return Subject{Kind: KindCephMDS, Name: rookNamespace + "/" + mdsPrefix + filesystem}
}

// MDSFilesystem returns the name of the MDS's CephFilesystem.
func MDSFilesystem(mds Subject) string {
	return strings.TrimPrefix(mds.Name, rookNamespace+"/"+mdsPrefix)
}

const (
	mdsPrefix = "rook-ceph-mds-"
	mdsOf     = "mds-of-"
)

// MDSOf is the UID of the MDS of the filesystem with that UID.
func MDSOf(filesystem string) string { return mdsOf + filesystem }

// The kinds of workload of Rook's daemons.
const (
	KindDeployment = "Deployment"
	KindDaemonSet  = "DaemonSet"
)

// RookWorkload is the workload of that kind and name in Rook's namespace.
func RookWorkload(kind, name string) Subject {
	return Subject{Kind: kind, Name: rookNamespace + "/" + name}
}

// RookAgent is the DaemonSet of the agent of Rook versions without CSI.
var RookAgent = RookWorkload(KindDaemonSet, "rook-ceph-agent")

// RookPodsFacts is what EKCO judges the settings of Rook's pods by.
type RookPodsFacts struct {
	UID string `json:"-"`
	// Generation counts the changes of the object's spec by any client; zero for a ConfigMap, which has none.
	Generation int64 `json:"generation,omitempty"`
	// Version is Rook's, for the ConfigMap alone; empty if unknown, with the reason in Unversioned.
	Version     string `json:"version,omitempty"`
	Unversioned string `json:"unversioned,omitempty"`
	// Differing are the keys of the ConfigMap whose resources differ from EKCO's or are missing, sorted; none for a
	// Rook that does not know all keys.
	Differing []string `json:"differing,omitempty"`
	// OneNode is set if the MDS are placed as kURL does on a single node, where they may share a host.
	OneNode bool `json:"one_node,omitempty"`
	// Spread is set if they are placed as EKCO does, each on its own host. If neither is set, another program placed
	// them.
	Spread bool `json:"spread,omitempty"`
	// Hosts are the nodes with ready MDS, sorted.
	Hosts []string `json:"hosts,omitempty"`
	// Daemon is the daemon of a workload, such as "osd".
	Daemon string `json:"daemon,omitempty"`
	// Priority is the priority class of a workload's pods, empty for none.
	Priority string `json:"priority,omitempty"`
}

// Changes counts the changes of the object's spec.
func (f RookPodsFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the object with that UID.
func (f RookPodsFacts) Of(uid string) RookPodsFacts {
	f.UID = uid
	return f
}

// RookPodsInput is the input of these actions; each uses its own fields.
type RookPodsInput struct {
	// Keys are the keys of the ConfigMap to set.
	Keys []string `json:"keys,omitempty"`
	// Nodes is how many nodes the change needs.
	Nodes int `json:"nodes,omitempty"`
	// Class is the priority class to set, and Daemon the daemon of the workload.
	Class  string `json:"class,omitempty"`
	Daemon string `json:"daemon,omitempty"`
}

// Lacks says which part of the input is missing in the thing, or "".
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

// Moved says how another program changed the thing, so that EKCO no longer may, or "". EKCO may always set the keys
// of the ConfigMap.
func (i RookPodsInput) Moved(kind string, live RookPodsFacts) string {
	switch {
	case kind == RookOperatorConfig.Kind:
	case kind == KindCephMDS && !live.OneNode && !live.Spread:
		return "the MDS are not placed as kURL does on a single node"
	case kind == KindCephMDS:
	case live.Priority != "" && live.Priority != i.Class:
		return "its pods have priority class " + live.Priority
	}
	return ""
}

// differ returns the keys that are not up to date.
func (i RookPodsInput) differ(live RookPodsFacts) (differ []string) {
	for _, key := range i.Keys {
		if slices.Contains(live.Differing, key) {
			differ = append(differ, key)
		}
	}
	return differ
}
