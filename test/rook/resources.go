package rook

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// resources is the present content of the custom resources.
type resources struct {
	nodes   []corev1.Node
	cluster *cephCluster
	blocks  []blockPool
	shared  []filesystem
	stores  []objectStore
}

// These are the parts of Rook's custom resources that the operator carries out in Ceph.
type (
	meta struct {
		Name              string `json:"name"`
		DeletionTimestamp string `json:"deletionTimestamp"`
	}
	pool struct {
		Replicated struct {
			Size int `json:"size"`
		} `json:"replicated"`
	}
	counted     struct{ Count int }
	cephCluster struct {
		Metadata meta
		Spec     struct {
			Mon, Mgr counted
			Storage  struct {
				UseAllNodes bool `json:"useAllNodes"`
				Nodes       []struct{ Name string }
			}
		}
	}
	blockPool struct {
		Metadata meta
		Spec     pool
	}
	filesystem struct {
		Metadata meta
		Spec     struct {
			MetadataPool   pool   `json:"metadataPool"`
			DataPools      []pool `json:"dataPools"`
			MetadataServer struct {
				Placement struct {
					PodAntiAffinity map[string]any `json:"podAntiAffinity"`
				} `json:"placement"`
			} `json:"metadataServer"`
		}
	}
	objectStore struct {
		Metadata meta
		Spec     struct {
			MetadataPool pool `json:"metadataPool"`
			DataPool     pool `json:"dataPool"`
		}
	}
)

// read reads the latest custom resources.
func (o *operator) read() (found resources, err error) {
	var clusters []cephCluster
	for i, into := range []func([]any) error{
		func(all []any) (err error) { found.nodes, err = decode[corev1.Node](all); return err },
		func(all []any) (err error) { clusters, err = decode[cephCluster](all); return err },
		func(all []any) (err error) { found.blocks, err = decode[blockPool](all); return err },
		func(all []any) (err error) { found.shared, err = decode[filesystem](all); return err },
		func(all []any) (err error) { found.stores, err = decode[objectStore](all); return err },
	} {
		if err := into(o.stores[watched[i]].List()); err != nil {
			return found, fmt.Errorf("read the %s: %w", watched[i].Resource, err)
		}
	}
	if len(clusters) > 0 && clusters[0].Metadata.DeletionTimestamp == "" {
		found.cluster = &clusters[0]
	}
	return found, nil
}

func decode[T any](all []any) ([]T, error) {
	decoded := make([]T, len(all))
	for i, each := range all {
		text, err := each.(*unstructured.Unstructured).MarshalJSON()
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &decoded[i]); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

// hosts returns the ready nodes that may store data, sorted.
func (r resources) hosts() []string {
	var hosts []string
	storage := r.cluster.Spec.Storage
	for _, node := range r.nodes {
		listed := slices.ContainsFunc(storage.Nodes, func(entry struct{ Name string }) bool { return entry.Name == node.Name })
		if ready(node) && (storage.UseAllNodes || listed) {
			hosts = append(hosts, node.Name)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// pools returns the requested size of each Ceph pool, under the names that Rook uses.
func (r resources) pools() map[string]int {
	pools := map[string]int{}
	for _, block := range r.blocks {
		pools[block.Metadata.Name] = block.Spec.Replicated.Size
	}
	for _, fs := range r.shared {
		pools[fs.Metadata.Name+"-metadata"] = fs.Spec.MetadataPool.Replicated.Size
		for i, data := range fs.Spec.DataPools {
			pools[fmt.Sprintf("%s-data%d", fs.Metadata.Name, i)] = data.Replicated.Size
		}
	}
	for _, store := range r.stores {
		pools[".rgw.root"] = store.Spec.MetadataPool.Replicated.Size
		for _, name := range []string{"control", "meta", "log", "buckets.index", "buckets.non-ec"} {
			pools[store.Metadata.Name+".rgw."+name] = store.Spec.MetadataPool.Replicated.Size
		}
		pools[store.Metadata.Name+".rgw.buckets.data"] = store.Spec.DataPool.Replicated.Size
	}
	return pools
}
