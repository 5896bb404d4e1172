package rook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/journal"
)

// resourceObject is the part of Rook's custom resources that EKCO reads.
type resourceObject struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		poolSection
		Mon, Mgr     *counted
		Storage      *storageSection
		External     struct{ Enable bool }
		MetadataPool *poolSection   `json:"metadataPool"`
		DataPool     *poolSection   `json:"dataPool"`
		DataPools    []*poolSection `json:"dataPools"`
	} `json:"spec"`
}

type counted struct {
	Count int `json:"count"`
}

type replicated struct {
	Size             int    `json:"size"`
	PerFailureDomain int    `json:"replicasPerFailureDomain"`
	SubFailureDomain string `json:"subFailureDomain"`
	RequireSafe      bool   `json:"requireSafeReplicaSize"`
}

// poolSection is the wanted state of a pool.
type poolSection struct {
	Replicated    *replicated `json:"replicated"`
	FailureDomain string      `json:"failureDomain"`
	CrushRoot     string      `json:"crushRoot"`
	DeviceClass   string      `json:"deviceClass"`
	// Name overrides the name that Rook gives the pool. For a data pool of a CephFilesystem, Rook adds the filesystem's
	// name before it.
	Name string `json:"name"`
}

// size returns the number of copies of a pool whose copies may be on any host. It returns 0 for other pools, because
// they may have fewer places than there are hosts.
func (p poolSection) size() int {
	anywhere := p.CrushRoot == "" && p.DeviceClass == "" && slices.Contains([]string{"", "host", "osd"}, p.FailureDomain)
	if r := p.Replicated; anywhere && r != nil && r.PerFailureDomain <= 1 && r.SubFailureDomain == "" {
		return r.Size
	}
	return 0
}

// storageSection has the nodes as unparsed JSON, because a patch tests their values.
type storageSection struct {
	UseAllNodes *bool             `json:"useAllNodes"`
	Nodes       []json.RawMessage `json:"nodes"`
	Sets        []json.RawMessage `json:"storageClassDeviceSets"`
}

func (s *storageSection) allNodes() bool { return s.UseAllNodes != nil && *s.UseAllNodes }

// hostnames returns the sorted names of the listed nodes.
func (s *storageSection) hostnames() (names []string) {
	for _, entry := range s.Nodes {
		var node struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(entry, &node) == nil && node.Name != "" {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// mgrs returns the wanted number of mgrs. It returns 0 if the number is not set; then Rook runs one mgr.
func (o resourceObject) mgrs() int {
	if o.Spec.Mgr == nil {
		return 0
	}
	return max(0, o.Spec.Mgr.Count)
}

// pools returns the pools whose copies may be on any host. The key is the path of the pool's size.
func (o resourceObject) pools() map[string]*poolSection {
	all := map[string]*poolSection{"/spec": &o.Spec.poolSection, "/spec/metadataPool": o.Spec.MetadataPool, "/spec/dataPool": o.Spec.DataPool}
	for i, data := range o.Spec.DataPools {
		all[fmt.Sprintf("/spec/dataPools/%d", i)] = data
	}
	pools := map[string]*poolSection{}
	for place, pool := range all {
		if pool != nil && pool.size() > 0 {
			pools[place+"/replicated/size"] = pool
		}
	}
	return pools
}

// sizesWithRedundancy returns the paths of the pool sizes that must be at least 2, because Rook requires it.
func (o resourceObject) sizesWithRedundancy() (places []string) {
	for place, pool := range o.pools() {
		if pool.Replicated.RequireSafe {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

// overridingNames returns the pool names that override Rook's names, as they are in Ceph.
func (o resourceObject) overridingNames() (names journal.RookNames) {
	for place, pool := range o.pools() {
		if pool.Name == "" {
			continue
		}
		if names == nil {
			names = journal.RookNames{}
		}
		names[place] = pool.Name
		if strings.HasPrefix(place, "/spec/dataPools/") {
			names[place] = o.Name + "-" + pool.Name
		}
	}
	return names
}

// numbers returns the numbers that EKCO may change, by path. Rook before 1.9 always runs one mgr.
func (o resourceObject) numbers(version Version) map[string]int {
	numbers := map[string]int{}
	count := func(place string, of *counted) {
		if of != nil && of.Count > 0 {
			numbers[place] = of.Count
		}
	}
	count(journal.RookMons, o.Spec.Mon)
	if version.AtLeast(1, 9, 0) {
		numbers[journal.RookMgrs] = o.mgrs()
	}
	for place, pool := range o.pools() {
		numbers[place] = pool.size()
	}
	if len(numbers) == 0 {
		return nil
	}
	return numbers
}

// facts returns the facts. If the object is being deleted, or Ceph is an external cluster, the facts have nothing to
// change.
func (o resourceObject) facts(version Version) journal.RookFacts {
	if o.DeletionTimestamp != nil || o.Spec.External.Enable {
		return journal.RookFacts{UID: string(o.UID), Generation: o.Generation}
	}
	facts := journal.RookFacts{UID: string(o.UID), Generation: o.Generation, Numbers: o.numbers(version), Redundant: o.sizesWithRedundancy(), Names: o.overridingNames()}
	if storage := o.Spec.Storage; storage != nil {
		facts.Storage = &journal.RookStorage{AllNodes: storage.allNodes(), Nodes: storage.hostnames(), Claims: len(storage.Sets) > 0}
	}
	return facts
}
