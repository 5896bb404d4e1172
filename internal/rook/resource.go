package rook

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// resourceObject is the part that EKCO reads.
type resourceObject struct {
	Metadata struct {
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
		Generation      int64  `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Mon, Mgr     *counted
		Storage      *storageSection
		Replicated   *replicated
		MetadataPool *poolSection   `json:"metadataPool"`
		DataPool     *poolSection   `json:"dataPool"`
		DataPools    []*poolSection `json:"dataPools"`
	} `json:"spec"`
}

type counted struct {
	Count int `json:"count"`
}

type replicated struct {
	Size int `json:"size"`
}

type poolSection struct {
	Replicated *replicated `json:"replicated"`
}

// storageSection keeps the nodes as they are written: a patch tests them.
type storageSection struct {
	UseAllNodes *bool             `json:"useAllNodes"`
	Nodes       []json.RawMessage `json:"nodes"`
	Sets        []json.RawMessage `json:"storageClassDeviceSets"`
}

func (s *storageSection) allNodes() bool { return s.UseAllNodes != nil && *s.UseAllNodes }

// hostnames returns those of the nodes that are listed, in order.
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

// numbers returns those that EKCO may change, by their places. Rook before 1.9 has one mgr
// whatever is asked for.
func (o resourceObject) numbers(version Version) map[string]int {
	numbers := map[string]int{}
	count := func(place string, of *counted) {
		if of != nil && of.Count > 0 {
			numbers[place] = of.Count
		}
	}
	size := func(pool string, of *replicated) {
		if of != nil && of.Size > 0 {
			numbers[pool+"/replicated/size"] = of.Size
		}
	}
	pool := func(place string, of *poolSection) {
		if of != nil {
			size(place, of.Replicated)
		}
	}
	count(journal.RookMons, o.Spec.Mon)
	if version.AtLeast(1, 9, 0) {
		count(journal.RookMgrs, o.Spec.Mgr)
	}
	size("/spec", o.Spec.Replicated)
	pool("/spec/metadataPool", o.Spec.MetadataPool)
	pool("/spec/dataPool", o.Spec.DataPool)
	for i, data := range o.Spec.DataPools {
		pool(fmt.Sprintf("/spec/dataPools/%d", i), data)
	}
	if len(numbers) == 0 {
		return nil
	}
	return numbers
}

func (o resourceObject) facts(version Version) journal.RookFacts {
	facts := journal.RookFacts{UID: o.Metadata.UID, Generation: o.Metadata.Generation, Numbers: o.numbers(version)}
	if storage := o.Spec.Storage; storage != nil {
		facts.Storage = &journal.RookStorage{AllNodes: storage.allNodes(), Nodes: storage.hostnames(), Claims: len(storage.Sets) > 0}
	}
	return facts
}
