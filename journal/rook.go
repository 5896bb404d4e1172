package journal

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The kinds of action that change Rook's custom resources. The input and the plan of each is a [RookChange].
const (
	// ActionAddStorageNodes lets Ceph use new nodes.
	ActionAddStorageNodes ActionKind = "add-storage-nodes"
	// ActionRaiseCopies makes Ceph keep more copies of data, once there are enough hosts.
	ActionRaiseCopies ActionKind = "raise-copies"
	// ActionAddCephDaemons makes Ceph's monitors and managers redundant.
	ActionAddCephDaemons ActionKind = "add-ceph-daemons"
)

// StepChangeRook is the step of each. Its outputs are the [RookFacts] of the object after it.
const StepChangeRook = "change"

// RookCluster is the CephCluster that kURL installs.
var RookCluster = Subject{Kind: "CephCluster", Name: rookNamespace + "/rook-ceph"}

// RookCeph is the cluster according to Ceph itself. Its UID is Ceph's fsid.
var RookCeph = Subject{Kind: "Ceph", Name: rookNamespace + "/ceph"}

const rookNamespace = "rook-ceph"

// The kinds of Rook's custom resources that have pools.
const (
	KindCephBlockPool   = "CephBlockPool"
	KindCephFilesystem  = "CephFilesystem"
	KindCephObjectStore = "CephObjectStore"
)

// RookPools is the custom resource of that kind and name.
func RookPools(kind, name string) Subject {
	return Subject{Kind: kind, Name: rookNamespace + "/" + name}
}

// HasRookPools reports whether the subject is a custom resource with pools.
func HasRookPools(of Subject) bool {
	return slices.Contains([]string{KindCephBlockPool, KindCephFilesystem, KindCephObjectStore}, of.Kind)
}

// RookFacts is what EKCO judges one of Rook's custom resources, or Ceph, by.
type RookFacts struct {
	UID string `json:"-"`
	// Generation counts the changes of its spec by any client; zero for Ceph.
	Generation int64 `json:"generation,omitempty"`
	// Version is the version of Rook, in the CephCluster alone; empty if unknown, with the reason in Unversioned.
	Version     string `json:"version,omitempty"`
	Unversioned string `json:"unversioned,omitempty"`
	// Numbers are those that EKCO may change with this version of Rook, by JSON pointer. If one is missing, Rook
	// decides it, as for zero mgrs, which means one.
	Numbers map[string]int `json:"numbers,omitempty"`
	// Storage is the CephCluster's; nil if it has none, as for an external Ceph.
	Storage *RookStorage `json:"storage,omitempty"`
	// Hosts are those with an OSD that is up and in and accepts data, sorted by name; only for Ceph.
	Hosts []string `json:"hosts,omitempty"`
	// Ceph is what else Ceph reports; nil except for Ceph.
	Ceph *CephFacts `json:"ceph,omitempty"`
	// Redundant are the places of numbers for which Rook requires 2 or more.
	Redundant []string `json:"redundant,omitempty"`
	// Names are the names of pools that the resource sets itself.
	Names RookNames `json:"names,omitempty"`
}

// CephFacts is what Ceph reports. It leaves out values that keep changing, such as bytes and numbers of placement
// groups.
type CephFacts struct {
	// Version is such as "16.2.15 pacific", empty if EKCO cannot read it.
	Version string `json:"version,omitempty"`
	// Health is Ceph's health, such as HEALTH_WARN. Checks are the codes of its health checks, sorted, with muted
	// ones.
	Health string   `json:"health,omitempty"`
	Checks []string `json:"checks,omitempty"`
	// Occupied are the hosts that have an OSD, running or not, sorted by name.
	Occupied []string `json:"occupied,omitempty"`
	// Crush are all hosts in the CRUSH map, also without OSDs, sorted by name.
	Crush []string `json:"crush,omitempty"`
	// Pools are sorted by name.
	Pools []CephPool `json:"pools,omitempty"`
}

// CephPool is a pool in Ceph, whatever Rook's resource says.
type CephPool struct {
	Name string `json:"name"`
	// Size is how many copies it keeps, and MinSize how many it needs to serve.
	Size    int `json:"size"`
	MinSize int `json:"min_size"`
	// PGMin is its minimum of placement groups, zero for none, and PGs how many it has, zero in earlier facts.
	PGMin int `json:"pg_num_min,omitempty"`
	PGs   int `json:"pg_num,omitempty"`
	// RecordedEnough is the verdict in facts without PGs: it has at least [PoolPGMin] placement groups.
	RecordedEnough bool `json:"enough_groups,omitempty"`
	// Bound is set if its copies cannot be on any hosts, or it has no copies.
	Bound bool `json:"bound,omitempty"`
	// OnOSDs is set if its copies are on different OSDs, and may be on one host.
	OnOSDs bool `json:"on_osds,omitempty"`
}

// RookStorage says which nodes Ceph may use.
type RookStorage struct {
	// AllNodes is set if it may use all nodes, whatever the list says.
	AllNodes bool `json:"all_nodes,omitempty"`
	// Nodes are the listed hostnames, sorted.
	Nodes []string `json:"nodes,omitempty"`
	// Claims is set if its OSDs are on claims and not on nodes.
	Claims bool `json:"claims,omitempty"`
}

// Changes counts the changes of the object's spec.
func (f RookFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the object with that UID.
func (f RookFacts) Of(uid string) RookFacts {
	f.UID = uid
	return f
}

// Lists reports whether the list allows Ceph to use the node with that hostname.
func (s *RookStorage) Lists(hostname string) bool {
	return s != nil && !s.AllNodes && slices.Contains(s.Nodes, hostname)
}

// The numbers of a CephCluster.
const (
	RookMons = "/spec/mon/count"
	RookMgrs = "/spec/mgr/count"
)

// RookNumberName names a number for people, from its place in the object.
func RookNumberName(place string) string {
	if pool, setting, is := PoolNumber(place); is {
		return setting + " of pool " + pool
	}
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(place, "/spec"), "/"), "/", ".")
}

// RookChange is a change of a custom resource, made completely or not at all.
type RookChange struct {
	// Numbers are the new numbers, by place.
	Numbers map[string]RookNumber `json:"numbers,omitempty"`
	// Nodes are to be listed; Ceph then uses only listed nodes.
	Nodes []RookNode `json:"nodes,omitempty"`
	// Hosts is how many hosts with storage the change needs; zero for any.
	Hosts int `json:"hosts,omitempty"`
	// Label is the label that a node must have to be listed, as key=value; empty for any node.
	Label string `json:"label,omitempty"`
	// Whole is set if the list replaces "all nodes": then a host with OSDs that is not in it would no longer be used.
	Whole bool `json:"whole,omitempty"`
	// Gone are the hosts for which a number is lowered, by their names in the CRUSH map.
	Gone []string `json:"gone,omitempty"`
	// Partly is set if it is to be lowered further should other hosts stay away.
	Partly bool `json:"partly,omitempty"`
	// ByCommand is set if Rook does not apply a lower number in Ceph: then EKCO also sets the pools.
	ByCommand bool `json:"by_command,omitempty"`
	// Names are the names of the changed pools, if the object sets them.
	Names RookNames `json:"names,omitempty"`
}

// RookNumber is a number before and after the change.
type RookNumber struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// RookNode is a node that Ceph is to use.
type RookNode struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Hostname is Rook's name for it.
	Hostname string `json:"hostname"`
	// Occupied is set if it has OSDs, so that it is listed even if it is not ready.
	Occupied bool `json:"occupied,omitempty"`
}

// CrushName is Rook's name for a machine in the CRUSH map, which has no dots.
func CrushName(hostname string) string { return strings.ReplaceAll(hostname, ".", "-") }

// From describes the numbers before the change, for people.
func (c RookChange) From() string { return c.numbers(func(n RookNumber) int { return n.From }) }

// To describes the numbers after the change.
func (c RookChange) To() string { return c.numbers(func(n RookNumber) int { return n.To }) }

func (c RookChange) numbers(which func(RookNumber) int) string {
	var texts []string
	for _, place := range slices.Sorted(maps.Keys(c.Numbers)) {
		number := strconv.Itoa(which(c.Numbers[place]))
		if number == "0" {
			number = "not set"
		}
		texts = append(texts, RookNumberName(place)+" "+number)
	}
	return strings.Join(texts, ", ")
}

// Lacks says which part of the change is missing, or "".
func (c RookChange) Lacks(live RookFacts) string {
	var lacks []string
	for _, place := range slices.Sorted(maps.Keys(c.Numbers)) {
		if has, _ := live.number(place); has != c.Numbers[place].To {
			lacks = append(lacks, RookNumberName(place)+" is "+strconv.Itoa(has))
		}
	}
	for _, node := range c.Nodes {
		if !live.Storage.Lists(node.Hostname) {
			lacks = append(lacks, node.Hostname+" is not listed")
		}
	}
	return strings.Join(lacks, ", ")
}

// Moved says which number has neither the old nor the new value, or "".
func (c RookChange) Moved(live RookFacts) string {
	for _, place := range slices.Sorted(maps.Keys(c.Numbers)) {
		has, there := live.number(place)
		switch number := c.Numbers[place]; {
		case !there:
			return RookNumberName(place) + " no longer exists"
		case has != number.From && has != number.To:
			return RookNumberName(place) + " is " + strconv.Itoa(has) + " now"
		}
	}
	return ""
}
