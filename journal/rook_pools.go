package journal

import (
	"strconv"
	"strings"
)

// RookNames has the names of the pools for which a custom resource sets the name in Ceph. The keys are the JSON
// pointers of the pools' sizes.
type RookNames map[string]string

// IsPoolFor reports whether a pool in Ceph is one that Rook creates for the size at a JSON pointer of a custom
// resource.
func (n RookNames) IsPoolFor(of Subject, place, pool string) bool {
	if name, own := n[place]; own {
		return pool == name
	}
	return hasDefaultName(of, place, pool)
}

// hasDefaultName applies Rook's rules for pools whose name the custom resource does not set.
func hasDefaultName(of Subject, place, pool string) bool {
	_, name, _ := strings.Cut(of.Name, "/")
	switch where := strings.TrimSuffix(place, "/replicated/size"); of.Kind {
	case KindCephBlockPool:
		return pool == name
	case KindCephFilesystem:
		number, isData := strings.CutPrefix(where, "/spec/dataPools/")
		_, err := strconv.Atoi(number)
		return where == "/spec/metadataPool" && pool == name+"-metadata" || isData && err == nil && pool == name+"-data"+number
	case KindCephObjectStore:
		return where == "/spec/dataPool" && pool == dataPoolName(name) || where == "/spec/metadataPool" && pool != dataPoolName(name) &&
			(pool == ".rgw.root" || strings.HasPrefix(pool, name+".rgw."))
	}
	return false
}

// dataPoolName returns the name of an object store's data pool. All other pools of the store are for metadata.
func dataPoolName(name string) string { return name + ".rgw.buckets.data" }
