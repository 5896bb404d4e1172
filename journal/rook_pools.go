package journal

import (
	"strconv"
	"strings"
)

// RookNames are the names in Ceph of pools that a custom resource names itself, by the places of their sizes.
type RookNames map[string]string

// Make reports whether Rook creates the pool with this name for that place of a custom resource, whose number is the
// pool's size.
func (n RookNames) Make(of Subject, place, pool string) bool {
	if name, own := n[place]; own {
		return pool == name
	}
	return named(of, place, pool)
}

// named applies Rook's rules for names.
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

// storeData is the data pool of an object store; all its other pools are for metadata.
func storeData(name string) string { return name + ".rgw.buckets.data" }
