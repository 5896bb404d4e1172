package minio

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// quota is the part of a ResourceQuota that EKCO reads.
type quota struct {
	object
	Status struct {
		Hard map[string]string `json:"hard"`
		Used map[string]string `json:"used"`
	} `json:"status"`
}

// exceeded returns a text about the first resource that exceeds the quota, or "".
func (q quota) exceeded() string {
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		hard, err := resource.ParseQuantity(q.Status.Hard[name])
		if err != nil {
			continue // the API server writes only valid quantities
		}
		used, err := resource.ParseQuantity(q.Status.Used[name])
		if err == nil && used.Cmp(hard) > 0 {
			return fmt.Sprintf("%s of %s %s", q.Status.Used[name], q.Status.Hard[name], name)
		}
	}
	return ""
}
