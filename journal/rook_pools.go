package journal

import (
	"strconv"
	"strings"
)

// RookNames are the names in Ceph of those pools to which a custom resource gives a name itself, by
// the places of their sizes.
type RookNames map[string]string

// Make reports whether Rook makes the pool that Ceph calls so of that place in a custom resource,
// whose size is the number there.
func (n RookNames) Make(of Subject, place, pool string) bool {
	if name, own := n[place]; own {
		return pool == name
	}
	return named(of, place, pool)
}

// named knows the names that Rook gives.
func named(of Subject, place, pool string) bool {
	_, name, _ := strings.Cut(of.Name, "/")
	switch where := strings.TrimSuffix(place, "/replicated/size"); of.Kind {
	case KindCephBlockPool:
		return pool == name
	case KindCephFilesystem:
		number, isData := strings.CutPrefix(where, "/spec/dataPools/")
		_, err := strconv.Atoi(number)
		return where == "/spec/metadataPool" && pool == name+"-metadata" || isData && err == nil && pool == name+"-data"+number
	case KindCephObjectStore:
		return where == "/spec/dataPool" && pool == storeData(name) || where == "/spec/metadataPool" && pool != storeData(name) &&
			(pool == ".rgw.root" || strings.HasPrefix(pool, name+".rgw."))
	}
	return false
}

// storeData is the pool of an object store's data; all its others are for what is known of it.
func storeData(name string) string { return name + ".rgw.buckets.data" }
