package journal

import (
	"slices"
	"strings"
)

// The kinds of action that change the settings of Rook's pods. The input of each is a [RookPodsInput].
const (
	// ActionSetCSIResources sets the resource requests and limits of the pods of Ceph's CSI drivers.
	ActionSetCSIResources ActionKind = "set-csi-resources"
	// ActionSpreadMDS makes the MDS pods of a filesystem run on different hosts.
	ActionSpreadMDS ActionKind = "spread-mds"
	// ActionSetPriorityClass sets the priority class of the pods of one of Rook's workloads.
	ActionSetPriorityClass ActionKind = "set-priority-class"
)

// The steps of these actions. StepSetRookPods changes the object, and its outputs are the new [RookPodsFacts].
const (
	StepSetRookPods    = "set"
	StepAwaitMDSHosts  = "await-hosts"
	StepEnsurePriority = "ensure-class"
	StepAwaitRolledOut = "await-rollout"
)

// RookOperatorConfig is the ConfigMap of Rook's operator, with the resources of the pods of Ceph's CSI drivers.
var RookOperatorConfig = Subject{Kind: "ConfigMap", Name: rookNamespace + "/rook-ceph-operator-config"}

// KindCephMDS is the kind of the subject for the MDS of a filesystem. Kubernetes has no such kind.
const KindCephMDS = "CephMDS"

// RookMDS returns the subject for the MDS of a CephFilesystem. Its name is the common part of the names of their
// Deployments. Its UID must be [MDSUID] the CephFilesystem's UID, because the CephFilesystem itself is another thing.
func RookMDS(filesystem string) Subject {
	return Subject{Kind: KindCephMDS, Name: rookNamespace + "/" + mdsNamePrefix + filesystem}
}

// MDSFilesystem returns the name of the CephFilesystem of a subject from [RookMDS].
func MDSFilesystem(mds Subject) string {
	return strings.TrimPrefix(mds.Name, rookNamespace+"/"+mdsNamePrefix)
}

const (
	mdsNamePrefix = "rook-ceph-mds-"
	mdsUIDPrefix  = "mds-of-"
)

// MDSUID returns the UID of the subject from [RookMDS]. filesystem is the UID of the CephFilesystem.
func MDSUID(filesystem string) string { return mdsUIDPrefix + filesystem }

// The Kubernetes kinds that Rook uses for its daemons.
const (
	KindDeployment = "Deployment"
	KindDaemonSet  = "DaemonSet"
)

// RookWorkload returns the subject for a Deployment or DaemonSet in Rook's namespace.
func RookWorkload(kind, name string) Subject {
	return Subject{Kind: kind, Name: rookNamespace + "/" + name}
}

// RookAgent is the DaemonSet of Rook's agent, which Rook versions without CSI have.
var RookAgent = RookWorkload(KindDaemonSet, "rook-ceph-agent")

// RookPodsFacts are the facts about the settings of Rook's pods that decisions use. Each object has only some of them.
type RookPodsFacts struct {
	UID string `json:"-"`
	// Generation counts all changes of the object's spec; zero for a ConfigMap, which has no spec.
	Generation int64 `json:"generation,omitempty"`
	// Version is the version of Rook. Only the facts about the ConfigMap have it. If it is unknown, Unversioned says
	// why.
	Version     string `json:"version,omitempty"`
	Unversioned string `json:"unversioned,omitempty"`
	// Differing are the sorted keys of the ConfigMap whose value is missing or is not the one that EKCO sets. It is
	// empty for a version of Rook that does not know all keys.
	Differing []string `json:"differing,omitempty"`
	// OneNode is set if the MDS have the placement that kURL sets on a single node, which lets them share a host.
	OneNode bool `json:"one_node,omitempty"`
	// Spread is set if the MDS have the placement that EKCO sets: each MDS on its own host. If neither OneNode nor
	// Spread is set, another program set the placement.
	Spread bool `json:"spread,omitempty"`
	// Hosts are the sorted names of the nodes with a ready MDS.
	Hosts []string `json:"hosts,omitempty"`
	// Daemon is the type of Ceph daemon that a workload runs, for example "osd".
	Daemon string `json:"daemon,omitempty"`
	// Priority is the priority class of a workload's pods; empty if they have none.
	Priority string `json:"priority,omitempty"`
}

// Changes returns how often the object's spec was changed.
func (f RookPodsFacts) Changes() int64 { return f.Generation }

// WithUID returns the facts with the UID of the object.
func (f RookPodsFacts) WithUID(uid string) RookPodsFacts {
	f.UID = uid
	return f
}

// RookPodsInput is the input of the actions that change Rook's pods. Each kind of action uses only some of the fields.
type RookPodsInput struct {
	// Keys are the keys of the ConfigMap to set.
	Keys []string `json:"keys,omitempty"`
	// Nodes is the minimum number of nodes for the change.
	Nodes int `json:"nodes,omitempty"`
	// Class is the priority class to set. Daemon is the type of Ceph daemon that the workload runs.
	Class  string `json:"class,omitempty"`
	Daemon string `json:"daemon,omitempty"`
}

// Lacks returns which part of the change the live object does not have yet, or "".
func (i RookPodsInput) Lacks(kind string, live RookPodsFacts) string {
	differ := i.outdatedKeys(live)
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

// Moved returns how another program changed the object so that EKCO must not change it any more, or "". EKCO may always
// set the keys of the ConfigMap.
func (i RookPodsInput) Moved(kind string, live RookPodsFacts) string {
	switch {
	case kind == RookOperatorConfig.Kind:
	case kind == KindCephMDS && !live.OneNode && !live.Spread:
		return "the placement of the MDS is not the one that kURL sets on a single node"
	case kind == KindCephMDS:
	case live.Priority != "" && live.Priority != i.Class:
		return "its pods have priority class " + live.Priority
	}
	return ""
}

// outdatedKeys returns the input's keys that are not up to date in the live object.
func (i RookPodsInput) outdatedKeys(live RookPodsFacts) (differ []string) {
	for _, key := range i.Keys {
		if slices.Contains(live.Differing, key) {
			differ = append(differ, key)
		}
	}
	return differ
}
