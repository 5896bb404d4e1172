package rooktypes

import (
	"reflect"
	"strings"
	"testing"

	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
)

// standIns are the modules that standin/ takes the place of.
var standIns = []string{"github.com/hashicorp/vault", "github.com/libopenstorage/secrets", "sigs.k8s.io/controller-runtime"}

func TestNoPartOfACephClusterHasATypeOfAStandIn(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	walk(reflect.TypeFor[cephv1.CephCluster](), seen)
	for typ := range seen {
		for _, module := range standIns {
			if strings.HasPrefix(typ.PkgPath(), module) {
				t.Errorf("%s is of a stand-in", typ)
			}
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[cephv1.Node](), reflect.TypeFor[cephv1.KeyManagementServiceSpec]()} {
		if !seen[typ] {
			t.Errorf("%s was not looked at", typ)
		}
	}
}

// walk adds a type and all types within it.
func walk(typ reflect.Type, seen map[reflect.Type]bool) {
	if seen[typ] {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		walk(typ.Elem(), seen)
	case reflect.Map:
		walk(typ.Key(), seen)
		walk(typ.Elem(), seen)
	case reflect.Struct:
		for i := range typ.NumField() {
			walk(typ.Field(i).Type, seen)
		}
	}
}
