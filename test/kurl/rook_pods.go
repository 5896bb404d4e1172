package kurl

import "fmt"

// These are names of objects in [RookPods].
const (
	RookOperatorConfig = "rook-ceph-operator-config"
	RookAgent          = "rook-ceph-agent"
)

// RookPods returns a List of what Rook's operator runs on a node, except OSDs and MDS, and its configuration: a
// monitor, a mgr, and the agent of Rook 1.0 on every node.
func RookPods(host string) any {
	daemon := func(app, id string) any {
		return deploymentOn(app+"-"+id, host, app, map[string]any{"app": app, "ceph_daemon_id": id})
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": RookOperatorConfig, "namespace": RookNamespace},
			"data":     map[string]any{"ROOK_LOG_LEVEL": "INFO", "CSI_ENABLE_RBD": "true"},
		},
		daemon("rook-ceph-mon", "a"), daemon("rook-ceph-mgr", "a"), agent(),
	}}
}

func agent() any {
	labels := map[string]any{"app": RookAgent}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": map[string]any{"name": RookAgent, "namespace": RookNamespace, "labels": labels},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{
					"terminationGracePeriodSeconds": 1,
					"containers":                    []any{map[string]any{"name": RookAgent, "image": "rook:1.0"}},
				},
			},
		},
	}
}

// mdsApart returns the affinity term that keeps two MDS from sharing a value of the topology key.
func mdsApart(topologyKey string) map[string]any {
	return map[string]any{
		"topologyKey": topologyKey,
		"labelSelector": map[string]any{"matchExpressions": []any{
			map[string]any{"key": "app", "operator": "In", "values": []any{"rook-ceph-mds"}},
		}},
	}
}

// SingleNodeMDS returns the spec of a filesystem's MDS as kURL patches it on a single node, with a toleration that a
// person added.
func SingleNodeMDS() map[string]any {
	prefer := func(topologyKey string) any {
		return map[string]any{"weight": 100, "podAffinityTerm": mdsApart(topologyKey)}
	}
	return map[string]any{
		"activeCount": 1, "activeStandby": true,
		"placement": map[string]any{
			"podAntiAffinity": map[string]any{
				"preferredDuringSchedulingIgnoredDuringExecution": []any{prefer("kubernetes.io/hostname"), prefer("topology.kubernetes.io/zone")},
			},
			"tolerations": []any{map[string]any{"key": "mine", "operator": "Exists"}},
		},
	}
}

// SpreadMDS returns the anti-affinity of MDS that run on two hosts.
func SpreadMDS() map[string]any {
	return map[string]any{
		"requiredDuringSchedulingIgnoredDuringExecution": []any{mdsApart("kubernetes.io/hostname")},
		"preferredDuringSchedulingIgnoredDuringExecution": []any{
			map[string]any{"weight": 100, "podAffinityTerm": mdsApart("topology.kubernetes.io/zone")},
		},
	}
}

// MDSDeployment returns a Deployment with the name, labels and strategy that Rook sets for an MDS.
func MDSDeployment(filesystem, id string) map[string]any {
	labels := map[string]any{"app": "rook-ceph-mds", "rook_file_system": filesystem, "ceph_daemon_id": filesystem + "-" + id}
	deployment := deploymentOn(fmt.Sprintf("rook-ceph-mds-%s-%s", filesystem, id), "", "mds", labels).(map[string]any)
	spec := deployment["spec"].(map[string]any)
	spec["strategy"] = map[string]any{"type": "Recreate"}
	delete(spec["template"].(map[string]any)["spec"].(map[string]any), "nodeSelector")
	return deployment
}
