package config

import "time"

// Nodes are the settings of clearing and purging lost nodes.
type Nodes struct {
	NodeUnreachableToleration time.Duration
	ClearDeadNodes            bool
	ClearAfter                time.Duration
	PodTerminationGrace       time.Duration
	PurgeDeadNodes            bool
	PurgeCooldown             time.Duration
	MinReadyMasterNodes       int
	MinReadyWorkerNodes       int
	MaxUnknownNodes           MaxUnknown
	CertificatesDir           string
}

func (n *Nodes) keys() []key {
	return []key{
		{
			name: "node_unreachable_toleration", value: &n.NodeUnreachableToleration, byDefault: "1h", built: true, check: positive,
			help: "how long a node must be unreachable before it is purged, if purge_dead_nodes is true",
		},
		{
			name: "clear_dead_nodes", value: &n.ClearDeadNodes, byDefault: "true", built: true,
			help: "force-delete pods that are stuck in Terminating on an unreachable node",
		},
		{
			name: "clear_after", value: &n.ClearAfter, byDefault: "5m", built: true, check: positive,
			help: "how long a node must be unreachable before its pods are freed; by default node_unreachable_toleration, at most 5m",
		},
		{
			name: "pod_termination_grace", value: &n.PodTerminationGrace, byDefault: "30s", built: true,
			help: "how long past its deletion timestamp a pod must be before it is force-deleted",
		},
		{
			name: "purge_dead_nodes", value: &n.PurgeDeadNodes, built: true,
			help: "purge nodes that are unreachable for longer than node_unreachable_toleration",
		},
		{
			name: "purge_cooldown", value: &n.PurgeCooldown, byDefault: "10m", built: true,
			help: "least time between two automatic purges",
		},
		{
			name: "min_ready_master_nodes", value: &n.MinReadyMasterNodes, byDefault: "2", built: true, check: atLeastOne,
			help: "ready primaries that must be left for a primary to be purged",
		},
		{
			name: "min_ready_worker_nodes", value: &n.MinReadyWorkerNodes, built: true,
			help: "ready workers that must be left for a worker to be purged",
		},
		{
			name: "max_unknown_nodes", value: &n.MaxUnknownNodes, byDefault: "55%", built: true,
			help: "unreachable nodes above which nothing destructive is started: a percentage of all nodes (rounded up) or a number",
		},
		{
			name: "certificates_dir", value: &n.CertificatesDir, byDefault: "/etc/kubernetes/pki", built: true,
			help: "directory of the Kubernetes certificates; a purge reads those of etcd in it",
		},
	}
}

func (n *Nodes) settle(set map[string]bool) {
	if !set["clear_after"] {
		n.ClearAfter = min(n.NodeUnreachableToleration, 5*time.Minute)
	}
}
