package rooktypes

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	cephv1 "github.com/rook/rook/pkg/apis/ceph.rook.io/v1"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/json"
)

// strict decodes JSON and refuses, unlike the API server, every field that the
// type does not have, in that case of letters, or that is there twice.
func strict(text []byte, into any) error {
	problems, err := json.UnmarshalStrict(text, into)
	if err := errors.Join(append(problems, err)...); err != nil {
		return fmt.Errorf("decode as %T: %w", into, err)
	}
	return nil
}

func TestAWrongFieldIsFound(t *testing.T) {
	cluster := func(storage string) string { return `{"spec":{"storage":` + storage + `}}` }
	for name, test := range map[string]struct {
		into       any
		text, want string
	}{
		"unknown":            {new(cephv1.CephCluster), cluster(`{"storageNodes":[]}`), "unknown field"},
		"unknown in a node":  {new(cephv1.CephCluster), cluster(`{"nodes":[{"name":"w1","hostname":"w1"}]}`), "unknown field"},
		"in another case":    {new(cephv1.CephCluster), cluster(`{"useallnodes":false}`), "unknown field"},
		"twice":              {new(cephv1.CephCluster), cluster(`{"useAllNodes":true,"useAllNodes":false}`), "duplicate field"},
		"a number as text":   {new(appsv1.Deployment), `{"spec":{"replicas":"0"}}`, "cannot unmarshal string"},
		"text as a number":   {new(cephv1.CephCluster), cluster(`{"nodes":[{"name":1}]}`), "cannot unmarshal number"},
		"names for nodes":    {new(cephv1.CephCluster), cluster(`{"nodes":["w1"]}`), "cannot unmarshal string"},
		"in another place":   {new(cephv1.CephCluster), `{"storage":{}}`, "unknown field"},
		"a config of number": {new(cephv1.CephCluster), cluster(`{"config":{"osdsPerDevice":1}}`), "cannot unmarshal number"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := strict([]byte(test.text), test.into); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := strict([]byte(cluster(`{"useAllNodes":false,"nodes":[{"name":"w1"}]}`)), new(cephv1.CephCluster)); err != nil {
		t.Errorf("a right one: %v", err)
	}
}
