package rook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/kube"
)

// amounts are amounts of memory and CPU.
type amounts struct{ memory, cpu string }

// containerShare has a container's requests and limits.
type containerShare struct{ requests, limits amounts }

var (
	sidecar = containerShare{amounts{"128Mi", "100m"}, amounts{"256Mi", "200m"}}
	plugin  = containerShare{amounts{"512Mi", "250m"}, amounts{"1Gi", "500m"}}
	small   = containerShare{amounts{"128Mi", "50m"}, amounts{"256Mi", "100m"}}
)

// csiShares are the resources that EKCO sets for the containers of Ceph's CSI drivers.
var csiShares = map[string]containerShare{
	"csi-provisioner": sidecar, "csi-resizer": sidecar, "csi-attacher": sidecar, "csi-snapshotter": sidecar,
	"csi-rbdplugin": plugin, "csi-cephfsplugin": plugin, "csi-nfsplugin": plugin, "csi-omap-generator": plugin,
	"driver-registrar": small, "liveness-prometheus": small,
}

// csiContainers are the containers of each kind of CSI pod. The map key is the key of the operator's ConfigMap that
// sets their resources.
var csiContainers = map[string][]string{
	"CSI_RBD_PROVISIONER_RESOURCE":    {"csi-provisioner", "csi-resizer", "csi-attacher", "csi-snapshotter", "csi-rbdplugin", "csi-omap-generator", "liveness-prometheus"},
	"CSI_RBD_PLUGIN_RESOURCE":         {"driver-registrar", "csi-rbdplugin", "liveness-prometheus"},
	"CSI_CEPHFS_PROVISIONER_RESOURCE": {"csi-provisioner", "csi-resizer", "csi-attacher", "csi-snapshotter", "csi-cephfsplugin", "liveness-prometheus"},
	"CSI_CEPHFS_PLUGIN_RESOURCE":      {"driver-registrar", "csi-cephfsplugin", "liveness-prometheus"},
	"CSI_NFS_PROVISIONER_RESOURCE":    {"csi-provisioner", "csi-nfsplugin"},
	"CSI_NFS_PLUGIN_RESOURCE":         {"driver-registrar", "csi-nfsplugin"},
}

// CSIKeys returns the sorted keys of the operator's ConfigMap that EKCO sets.
func CSIKeys() []string { return slices.Sorted(maps.Keys(csiContainers)) }

// CSIResources returns the value that EKCO sets for the key, in the form of Rook's examples. It returns "" for other
// keys.
func CSIResources(key string) string {
	var text strings.Builder
	for _, container := range csiContainers[key] {
		of := csiShares[container]
		fmt.Fprintf(&text, "- name: %s\n  resource:\n    requests:\n      memory: %s\n      cpu: %s\n    limits:\n      memory: %s\n      cpu: %s\n",
			container, of.requests.memory, of.requests.cpu, of.limits.memory, of.limits.cpu)
	}
	return text.String()
}

// differingCSI returns the keys for which the ConfigMap has other resources than EKCO sets.
func differingCSI(data map[string]string) (keys []string) {
	for _, key := range CSIKeys() {
		if !sameResources(data[key], CSIResources(key)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// quantities has the quantities by the name of the resource, such as "cpu".
type quantities map[string]apiresource.Quantity

// containerResources is an entry of the list that Rook reads. Rook ignores other fields.
type containerResources struct {
	Name     string `json:"name"`
	Resource struct {
		Requests quantities `json:"requests"`
		Limits   quantities `json:"limits"`
	} `json:"resource"`
}

// sameResources reports whether two texts give the same containers the same resources, in any notation. It returns
// false if it cannot parse a text.
func sameResources(a, b string) bool {
	of, err := readResources(a)
	if err != nil {
		return false
	}
	other, err := readResources(b)
	return err == nil && maps.EqualFunc(of, other, func(x, y containerResources) bool {
		same := func(x, y apiresource.Quantity) bool { return x.Cmp(y) == 0 }
		return maps.EqualFunc(x.Resource.Requests, y.Resource.Requests, same) && maps.EqualFunc(x.Resource.Limits, y.Resource.Limits, same)
	})
}

// readResources returns the entries by container name. The names must be unique.
func readResources(text string) (map[string]containerResources, error) {
	var list []containerResources
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	of := make(map[string]containerResources, len(list))
	for _, entry := range list {
		if _, twice := of[entry.Name]; twice {
			return nil, fmt.Errorf("container %q is listed twice", entry.Name)
		}
		of[entry.Name] = entry
	}
	return of, nil
}

// patchCSI returns a patch that sets the keys.
func (o podsObject) patchCSI(keys []string) []kube.PatchOp {
	patch := o.testVersion()
	if o.Data == nil {
		patch = append(patch, kube.PatchOp{Op: "add", Path: "/data", Value: map[string]string{}})
	}
	for _, key := range differingCSI(o.Data) {
		if slices.Contains(keys, key) {
			patch = append(patch, kube.PatchOp{Op: "add", Path: "/data/" + key, Value: CSIResources(key)})
		}
	}
	return patch
}
