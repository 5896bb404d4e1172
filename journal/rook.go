package journal

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The kinds of action that change Rook's custom resources. The input of each, and its plan, is a
// [RookChange].
const (
	// ActionAddStorageNodes lets Ceph use nodes that joined.
	ActionAddStorageNodes ActionKind = "add-storage-nodes"
	// ActionRaiseCopies has Ceph keep data in more copies, as there are hosts for them.
	ActionRaiseCopies ActionKind = "raise-copies"
	// ActionAddCephDaemons makes Ceph's monitors and managers redundant.
	ActionAddCephDaemons ActionKind = "add-ceph-daemons"
)

// StepChangeRook is the step of each. It leaves the [RookFacts] of the object as it is then.
const StepChangeRook = "change"

// RookCluster is the CephCluster that kURL installs.
var RookCluster = Subject{Kind: "CephCluster", Name: rookNamespace + "/rook-ceph"}

// RookCeph is what Ceph itself says of the cluster. Its identity is Ceph's fsid.
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

// RookFacts is what EKCO judges one of Rook's custom resources by, or Ceph.
type RookFacts struct {
	UID string `json:"-"`
	// Generation counts the changes of what is asked of it, whoever made them; zero for Ceph.
	Generation int64 `json:"generation,omitempty"`
	// Version is the version of Rook, in the CephCluster alone; empty where it is not known,
	// for which Unversioned is the reason.
	Version     string `json:"version,omitempty"`
	Unversioned string `json:"unversioned,omitempty"`
	// Numbers are those that EKCO may change with this version of Rook, by their place in the
	// object as a JSON pointer. Where there is none it is Rook that decides; of zero mgrs too,
	// which are one.
	Numbers map[string]int `json:"numbers,omitempty"`
	// Storage is the CephCluster's, nil where it has none, as for a Ceph that runs elsewhere.
	Storage *RookStorage `json:"storage,omitempty"`
	// Hosts are those with an OSD that is up and in and takes data, in order of their names; of
	// Ceph alone.
	Hosts []string `json:"hosts,omitempty"`
	// Ceph is what Ceph says of itself besides; nil of everything else.
	Ceph *CephFacts `json:"ceph,omitempty"`
	// Redundant are the places of numbers that Rook takes only from 2 on.
	Redundant []string `json:"redundant,omitempty"`
	// Names are those that it gives its pools itself.
	Names RookNames `json:"names,omitempty"`
}

// CephFacts is what Ceph says of itself. What changes by itself, as numbers of placement groups
// and bytes do, is none of it.
type CephFacts struct {
	// Version is such as "16.2.15 pacific", empty where Ceph says none that EKCO can read.
	Version string `json:"version,omitempty"`
	// Health is Ceph's opinion of itself, such as HEALTH_WARN, and Checks are the codes of its
	// reasons, in order, and of those that somebody muted.
	Health string   `json:"health,omitempty"`
	Checks []string `json:"checks,omitempty"`
	// Occupied are the hosts that have an OSD, whether or not it runs, in order of their names.
	Occupied []string `json:"occupied,omitempty"`
	// Crush are all hosts that the CRUSH map has, also those without OSDs, in order of their
	// names.
	Crush []string `json:"crush,omitempty"`
	// Pools are in order of their names.
	Pools []CephPool `json:"pools,omitempty"`
}

// CephPool is a pool as Ceph has it, whatever Rook is asked for.
type CephPool struct {
	Name string `json:"name"`
	// Size is how many copies it keeps, and MinSize without how many it does not serve.
	Size    int `json:"size"`
	MinSize int `json:"min_size"`
	// PGMin is how many placement groups it shall have at least, zero for any; Enough is set
	// where it has as many as [PoolPGMin].
	PGMin  int  `json:"pg_num_min,omitempty"`
	Enough bool `json:"enough_groups,omitempty"`
	// Bound is set where its copies cannot be on any hosts, or are no copies.
	Bound bool `json:"bound,omitempty"`
	// OnOSDs is set where its copies are on different OSDs, and may be on one host.
	OnOSDs bool `json:"on_osds,omitempty"`
}

// RookStorage says which nodes Ceph may use.
type RookStorage struct {
	// AllNodes is set when it may use all, whatever is listed.
	AllNodes bool `json:"all_nodes,omitempty"`
	// Nodes are the hostnames that are listed, in order of their names.
	Nodes []string `json:"nodes,omitempty"`
	// Claims is set when its OSDs are on claims instead of nodes.
	Claims bool `json:"claims,omitempty"`
}

// Changes counts the changes of what is asked of the object.
func (f RookFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the object with that UID.
func (f RookFacts) Of(uid string) RookFacts {
	f.UID = uid
	return f
}

// Lists reports whether Ceph may use the node of that hostname because it is listed.
func (s *RookStorage) Lists(hostname string) bool {
	return s != nil && !s.AllNodes && slices.Contains(s.Nodes, hostname)
}

// The numbers of a CephCluster.
const (
	RookMons = "/spec/mon/count"
	RookMgrs = "/spec/mgr/count"
)

// RookNumberName is what people call a number, by its place in the object.
func RookNumberName(place string) string {
	if pool, setting, is := PoolNumber(place); is {
		return setting + " of pool " + pool
	}
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(place, "/spec"), "/"), "/", ".")
}

// RookChange is what is to be changed of a custom resource, which has all of it changed at
// once or is left as it is.
type RookChange struct {
	// Numbers are to be others, by their places.
	Numbers map[string]RookNumber `json:"numbers,omitempty"`
	// Nodes are to be listed, and no others used than those that are listed.
	Nodes []RookNode `json:"nodes,omitempty"`
	// Hosts is how many hosts with storage the change needs; zero for any.
	Hosts int `json:"hosts,omitempty"`
	// Label is what a node that is to be listed has, as key=value; empty for anything.
	Label string `json:"label,omitempty"`
	// Whole is set when the list takes the place of all nodes: a host with OSDs that it does
	// not name would be one that Ceph shall not use.
	Whole bool `json:"whole,omitempty"`
	// Gone are the hosts for which a number is to be lowered, by their names in the CRUSH map.
	Gone []string `json:"gone,omitempty"`
	// Partly is set where it is to be lowered further if other hosts do not come back.
	Partly bool `json:"partly,omitempty"`
	// ByCommand is set where Rook does not carry a lower number into Ceph: EKCO sets the pools
	// that it is for as well.
	ByCommand bool `json:"by_command,omitempty"`
	// Names are those of the pools that numbers are for, where the object gives one.
	Names RookNames `json:"names,omitempty"`
}

// RookNumber is a number as it was, and as it shall be.
type RookNumber struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// RookNode is a node that Ceph shall use.
type RookNode struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Hostname is what Rook calls it.
	Hostname string `json:"hostname"`
	// Occupied is set when it has OSDs, so that it is listed ready or not.
	Occupied bool `json:"occupied,omitempty"`
}

// CrushName is what Rook calls a machine in the CRUSH map, where there are no dots.
func CrushName(hostname string) string { return strings.ReplaceAll(hostname, ".", "-") }

// From and To say what the numbers are and shall be, for people.
func (c RookChange) From() string { return c.numbers(func(n RookNumber) int { return n.From }) }

// To is the reverse of From.
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

// Lacks says what of the change is not there yet, or "".
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

// Moved says which number is neither what it was nor what it shall be, or "".
func (c RookChange) Moved(live RookFacts) string {
	for _, place := range slices.Sorted(maps.Keys(c.Numbers)) {
		has, there := live.number(place)
		switch number := c.Numbers[place]; {
		case !there:
			return RookNumberName(place) + " is no longer there"
		case has != number.From && has != number.To:
			return RookNumberName(place) + " is " + strconv.Itoa(has) + " now"
		}
	}
	return ""
}
