package journal

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The kinds of action that change Rook's custom resources. Their input and the facts of their plan are a [RookChange].
const (
	// ActionAddStorageNodes adds nodes to the list of storage nodes, so that Ceph uses them.
	ActionAddStorageNodes ActionKind = "add-storage-nodes"
	// ActionRaiseCopies makes Ceph store more copies of the data, if there are enough hosts.
	ActionRaiseCopies ActionKind = "raise-copies"
	// ActionAddCephDaemons makes Ceph's monitors and managers redundant.
	ActionAddCephDaemons ActionKind = "add-ceph-daemons"
)

// StepChangeRook is the step of these actions that changes the object. Its outputs are the [RookFacts] of the changed
// object.
const StepChangeRook = "change"

// RookCluster is the CephCluster that kURL installs.
var RookCluster = Subject{Kind: "CephCluster", Name: rookNamespace + "/rook-ceph"}

// RookCeph is the subject for facts that Ceph itself reports. Its UID is Ceph's fsid.
var RookCeph = Subject{Kind: "Ceph", Name: rookNamespace + "/ceph"}

const rookNamespace = "rook-ceph"

// The kinds of Rook's custom resources that have pools.
const (
	KindCephBlockPool   = "CephBlockPool"
	KindCephFilesystem  = "CephFilesystem"
	KindCephObjectStore = "CephObjectStore"
)

// RookPools returns the subject for a custom resource with pools.
func RookPools(kind, name string) Subject {
	return Subject{Kind: kind, Name: rookNamespace + "/" + name}
}

// HasRookPools reports whether the subject is a custom resource with pools.
func HasRookPools(of Subject) bool {
	return slices.Contains([]string{KindCephBlockPool, KindCephFilesystem, KindCephObjectStore}, of.Kind)
}

// RookFacts are the facts about one of Rook's custom resources, or about Ceph, that decisions use.
type RookFacts struct {
	UID string `json:"-"`
	// Generation counts all changes of the resource's spec; zero for Ceph.
	Generation int64 `json:"generation,omitempty"`
	// Version is the version of Rook. Only the facts about the CephCluster have it. If it is unknown, Unversioned says
	// why.
	Version     string `json:"version,omitempty"`
	Unversioned string `json:"unversioned,omitempty"`
	// Numbers are the numbers in the spec that EKCO may change with this version of Rook, by JSON pointer. For a
	// missing number, Rook uses its default.
	Numbers map[string]int `json:"numbers,omitempty"`
	// Storage is the storage section of the CephCluster; nil if it has none, for example for an external Ceph.
	Storage *RookStorage `json:"storage,omitempty"`
	// Hosts are the hosts with an OSD that is up, is in and accepts data, sorted by name. Only facts about Ceph have
	// them.
	Hosts []string `json:"hosts,omitempty"`
	// Ceph has the other facts that Ceph reports; nil in the facts about a custom resource.
	Ceph *CephFacts `json:"ceph,omitempty"`
	// Redundant are the JSON pointers of the numbers for which Rook requires 2 or more.
	Redundant []string `json:"redundant,omitempty"`
	// Names are the names of pools, if the resource sets them.
	Names RookNames `json:"names,omitempty"`
}

// CephFacts are the facts that Ceph reports. They do not contain values that change all the time, such as the number of
// bytes, because each change would be an event.
type CephFacts struct {
	// Version is the version of Ceph, for example "16.2.15 pacific"; empty if EKCO cannot read it.
	Version string `json:"version,omitempty"`
	// Health is Ceph's health, for example HEALTH_WARN. Checks are the sorted codes of the failed health checks,
	// including muted checks.
	Health string   `json:"health,omitempty"`
	Checks []string `json:"checks,omitempty"`
	// Occupied are the hosts that have an OSD, sorted by name. The OSD may be down.
	Occupied []string `json:"occupied,omitempty"`
	// Crush are all hosts in the CRUSH map, sorted by name, including hosts without OSDs.
	Crush []string `json:"crush,omitempty"`
	// Pools are sorted by name.
	Pools []CephPool `json:"pools,omitempty"`
}

// CephPool has the facts about a pool that Ceph reports. Rook's resource may differ.
type CephPool struct {
	Name string `json:"name"`
	// Size is the number of copies of the data. MinSize is the number of copies that must be available to serve
	// clients.
	Size    int `json:"size"`
	MinSize int `json:"min_size"`
	// PGMin is the minimum number of placement groups; zero for no minimum. PGs is their present number; zero in facts
	// of earlier versions.
	PGMin int `json:"pg_num_min,omitempty"`
	PGs   int `json:"pg_num,omitempty"`
	// RecordedEnough says in facts without PGs that the pool has at least [PoolPGMin] placement groups.
	RecordedEnough bool `json:"enough_groups,omitempty"`
	// Bound is set if the pool's copies must be on certain hosts, or if the pool stores no copies.
	Bound bool `json:"bound,omitempty"`
	// OnOSDs is set if the pool's copies must be on different OSDs but may be on the same host.
	OnOSDs bool `json:"on_osds,omitempty"`
}

// RookStorage is the storage section of a CephCluster, which says which nodes Ceph may use.
type RookStorage struct {
	// AllNodes is set if Ceph may use all nodes, not only the listed ones.
	AllNodes bool `json:"all_nodes,omitempty"`
	// Nodes are the listed hostnames, sorted.
	Nodes []string `json:"nodes,omitempty"`
	// Claims is set if the OSDs use PersistentVolumeClaims instead of the nodes' disks.
	Claims bool `json:"claims,omitempty"`
}

// Changes returns how often the object's spec was changed.
func (f RookFacts) Changes() int64 { return f.Generation }

// WithUID returns the facts with the UID of the object.
func (f RookFacts) WithUID(uid string) RookFacts {
	f.UID = uid
	return f
}

// Lists reports whether Ceph uses only listed nodes, and the node with this hostname is one of them.
func (s *RookStorage) Lists(hostname string) bool {
	return s != nil && !s.AllNodes && slices.Contains(s.Nodes, hostname)
}

// The JSON pointers of the numbers in a CephCluster.
const (
	RookMons = "/spec/mon/count"
	RookMgrs = "/spec/mgr/count"
)

// RookNumberName returns a name for people of the number at a JSON pointer or a [PoolPlace].
func RookNumberName(place string) string {
	if pool, setting, is := PoolNumber(place); is {
		return setting + " of pool " + pool
	}
	return strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(place, "/spec"), "/"), "/", ".")
}

// RookChange is a change of a custom resource. EKCO makes the whole change or none of it.
type RookChange struct {
	// Numbers are the numbers to change, by JSON pointer or [PoolPlace].
	Numbers map[string]RookNumber `json:"numbers,omitempty"`
	// Nodes are the nodes to add to the list of storage nodes. Ceph then uses only listed nodes.
	Nodes []RookNode `json:"nodes,omitempty"`
	// Hosts is the minimum number of hosts with storage for the change; zero for no minimum.
	Hosts int `json:"hosts,omitempty"`
	// Label is the label that a node must have to be added to the list, as key=value; empty if none is required.
	Label string `json:"label,omitempty"`
	// Whole is set if the list replaces the setting that Ceph uses all nodes. Ceph would then no longer use a host with
	// OSDs that is not in Nodes.
	Whole bool `json:"whole,omitempty"`
	// Gone are the lost hosts because of which EKCO lowers a number, by their names in the CRUSH map.
	Gone []string `json:"gone,omitempty"`
	// Partly is set if EKCO will lower the number further unless other hosts return.
	Partly bool `json:"partly,omitempty"`
	// ByCommand is set if Rook does not apply a lower number to Ceph's pools, so that EKCO must also set it there.
	ByCommand bool `json:"by_command,omitempty"`
	// Names are the names of the changed pools, if the resource sets them.
	Names RookNames `json:"names,omitempty"`
}

// RookNumber has the values of a number before and after a change.
type RookNumber struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// RookNode is a node to add to the list of storage nodes.
type RookNode struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
	// Hostname is the name of the node in Rook's list.
	Hostname string `json:"hostname"`
	// Occupied is set if the node has OSDs. EKCO then adds the node even if it is not ready.
	Occupied bool `json:"occupied,omitempty"`
}

// CrushName returns the name that Rook gives a host in the CRUSH map. Rook replaces dots.
func CrushName(hostname string) string { return strings.ReplaceAll(hostname, ".", "-") }

// From returns a text for people with the numbers before the change.
func (c RookChange) From() string { return c.numbers(func(n RookNumber) int { return n.From }) }

// To returns a text for people with the numbers after the change.
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

// Lacks returns which part of the change the live object does not have yet, or "".
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

// Moved names a number that another client changed to neither the old nor the new value. It returns "" if there is
// none.
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
