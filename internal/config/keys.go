package config

import "time"

// key is one setting: its name, where its value is kept and what is accepted.
type key struct {
	name string
	// field returns a pointer to the value; its type says how text is read.
	field func(*Config) any
	help  string
	// check says what is expected of a value, or returns "" if it is fine.
	check  func(any) string
	secret bool
	// built says that the setting has an effect in this EKCO.
	built bool
	// does is what a setting that switches something on has EKCO do, in words
	// that follow "it does not"; empty for others, and for those that are built.
	does string
}

// keys lists every setting in the order of the documentation.
var keys = []key{
	{name: "log_level", built: true, field: func(c *Config) any { return &c.LogLevel }, check: oneOf("debug", "info", "warn", "error"), help: "least severe level that is logged: debug, info, warn or error"},
	{name: "kubeconfig", built: true, field: func(c *Config) any { return &c.Kubeconfig }, help: "kubeconfig to use outside of a cluster; empty means the pod's service account"},
	{name: "listen_address", built: true, field: func(c *Config) any { return &c.ListenAddress }, check: address, help: "address of /healthz, /readyz and /metrics"},

	{name: "journal", built: true, field: func(c *Config) any { return &c.Journal }, check: notEmpty, help: "file of the journal; the operator's socket is beside it, with the extension .sock"},
	{name: "journal_retention", built: true, field: func(c *Config) any { return &c.JournalRetention }, check: positive, help: "age at which events of finished actions are moved into a compressed export beside the journal"},
	{name: "journal_max_size", built: true, field: func(c *Config) any { return &c.JournalMaxSize }, check: roomForAJournal, help: "size of the journal above which younger events are moved out too, the oldest first; 0 for no limit"},

	{name: "dry_run", built: true, field: func(c *Config) any { return &c.DryRun }, help: "run everything except effects, and record what would have been done"},
	{name: "node_unreachable_toleration", built: true, field: func(c *Config) any { return &c.NodeUnreachableToleration }, check: positive, help: "how long a node must be unreachable before it is purged, if purge_dead_nodes is true"},
	{name: "clear_dead_nodes", built: true, field: func(c *Config) any { return &c.ClearDeadNodes }, help: "force-delete pods that hang in termination on an unreachable node"},
	{name: "clear_after", built: true, field: func(c *Config) any { return &c.ClearAfter }, check: positive, help: "how long a node must be unreachable before its pods are freed; by default node_unreachable_toleration, at most 5m"},
	{name: "pod_termination_grace", built: true, field: func(c *Config) any { return &c.PodTerminationGrace }, help: "how long past its deletion timestamp a pod must be before it is force-deleted"},
	{name: "purge_dead_nodes", built: true, field: func(c *Config) any { return &c.PurgeDeadNodes }, help: "purge nodes that are unreachable for longer than node_unreachable_toleration"},
	{name: "purge_cooldown", built: true, field: func(c *Config) any { return &c.PurgeCooldown }, help: "least time between two automatic purges"},
	{name: "min_ready_master_nodes", built: true, field: func(c *Config) any { return &c.MinReadyMasterNodes }, check: atLeastOne, help: "ready primaries that must be left for a primary to be purged"},
	{name: "min_ready_worker_nodes", built: true, field: func(c *Config) any { return &c.MinReadyWorkerNodes }, help: "ready workers that must be left for a worker to be purged"},
	{name: "max_unknown_nodes", built: true, field: func(c *Config) any { return &c.MaxUnknownNodes }, help: "unreachable nodes above which nothing destructive is started: a percentage of all nodes (rounded up) or a number"},
	{name: "settling_time", built: true, field: func(c *Config) any { return &c.SettlingTime }, help: "how long EKCO watches after a start, an API outage or a jump of the clock before it decides anything"},
	{name: "reconcile_interval", built: true, field: func(c *Config) any { return &c.ReconcileInterval }, check: positive, help: "how often to poll what may not be watched"},
	{name: "reconcile_timeout", field: func(c *Config) any { return &c.ReconcileTimeout }, help: "limit of one poll; 0 means 15m"},
	{name: "certificates_dir", built: true, field: func(c *Config) any { return &c.CertificatesDir }, help: "directory of the Kubernetes certificates; a purge reads those of etcd in it"},

	{name: "rook_version", built: true, field: func(c *Config) any { return &c.RookVersion }, help: "accepted for compatibility and ignored"},
	{name: "maintain_rook_storage_nodes", built: true, field: func(c *Config) any { return &c.MaintainRookStorageNodes }, help: "remove a purged node from Rook and Ceph"},
	{name: "osd_purge_wait", built: true, field: func(c *Config) any { return &c.OSDPurgeWait }, help: "how long a purge leaves a node's OSDs marked out, so that Ceph copies their data, before it removes them"},
	{name: "rook_storage_nodes", built: true, field: func(c *Config) any { return &c.RookStorageNodes }, help: "the installer's list of storage nodes; if it is not empty, the list of the CephCluster is left alone"},
	{name: "rook_storage_nodes_label", does: "keep Ceph's data on the nodes with the label", field: func(c *Config) any { return &c.RookStorageNodesLabel }, check: labelPair, help: "key=value; if set, only nodes with this label store Ceph data"},
	{name: "reconcile_rook_mds_placement", does: "keep the placement of Ceph's MDS right", field: func(c *Config) any { return &c.ReconcileRookMDSPlacement }, help: "keep the placement of Ceph's MDS right"},
	{name: "reconcile_ceph_csi_resources", does: "keep the resource requests of Ceph's CSI pods small", field: func(c *Config) any { return &c.ReconcileCephCSIResources }, help: "keep the resource requests of Ceph's CSI pods small"},
	{name: "ceph_block_pool", field: func(c *Config) any { return &c.CephBlockPool }, help: "name of the managed CephBlockPool"},
	{name: "ceph_filesystem", field: func(c *Config) any { return &c.CephFilesystem }, help: "name of the managed CephFilesystem"},
	{name: "ceph_object_store", field: func(c *Config) any { return &c.CephObjectStore }, help: "name of the managed CephObjectStore"},
	{name: "min_ceph_pool_replication", field: func(c *Config) any { return &c.MinCephPoolReplication }, help: "least replication of the managed pools"},
	{name: "max_ceph_pool_replication", field: func(c *Config) any { return &c.MaxCephPoolReplication }, help: "highest replication of the managed pools"},
	{name: "rook_priority_class", field: func(c *Config) any { return &c.RookPriorityClass }, help: "priority class of Rook 1.0 workloads; empty for none"},
	{name: "rook_minimum_node_count", does: "make a Ceph cluster", field: func(c *Config) any { return &c.RookMinimumNodeCount }, help: "nodes at which a Ceph cluster is made; active only above 2"},
	{name: "rook_ceph_image", field: func(c *Config) any { return &c.RookCephImage }, help: "Ceph image of a cluster that EKCO makes"},
	{name: "rook_storage_class", field: func(c *Config) any { return &c.RookStorageClass }, help: "storage class that Rook provides"},
	{name: "storage_migration_auth_token", field: func(c *Config) any { return &c.StorageMigrationAuthToken }, secret: true, help: "bearer token that approves the storage migration; empty for none"},

	{name: "rotate_certs", does: "renew certificates", field: func(c *Config) any { return &c.RotateCerts }, help: "renew certificates before they expire"},
	{name: "rotate_certs_image", field: func(c *Config) any { return &c.RotateCertsImage }, help: "image of the pods that renew certificates"},
	{name: "rotate_certs_namespace", field: func(c *Config) any { return &c.RotateCertsNamespace }, help: "namespace of the pods that renew certificates"},
	{name: "rotate_certs_ttl", field: func(c *Config) any { return &c.RotateCertsTTL }, check: positive, help: "renew certificates that expire within this time"},
	{name: "rotate_certs_check_interval", field: func(c *Config) any { return &c.RotateCertsCheckInterval }, check: positive, help: "how often certificates are looked at"},
	{name: "registry_cert_namespace", field: func(c *Config) any { return &c.RegistryCertNamespace }, help: "namespace of the registry"},
	{name: "registry_cert_secret", field: func(c *Config) any { return &c.RegistryCertSecret }, help: "secret of the registry's certificate"},
	{name: "kurl_proxy_cert_namespace", field: func(c *Config) any { return &c.KurlProxyCertNamespace }, help: "namespace of the kURL proxy"},
	{name: "kurl_proxy_cert_secret", field: func(c *Config) any { return &c.KurlProxyCertSecret }, help: "secret of the kURL proxy's certificate"},
	{name: "kotsadm_kubelet_cert_namespace", field: func(c *Config) any { return &c.KotsadmKubeletCertNamespace }, help: "namespace of kotsadm"},
	{name: "kotsadm_kubelet_cert_secret", field: func(c *Config) any { return &c.KotsadmKubeletCertSecret }, help: "secret of kotsadm's kubelet client certificate"},
	{name: "contour_namespace", field: func(c *Config) any { return &c.ContourNamespace }, help: "namespace of Contour"},
	{name: "contour_cert_namespace", field: func(c *Config) any { return &c.ContourCertNamespace }, help: "old name of contour_namespace, used if that is not set"},
	{name: "contour_cert_secret", field: func(c *Config) any { return &c.ContourCertSecret }, help: "secret of Contour's certificate"},
	{name: "envoy_cert_secret", field: func(c *Config) any { return &c.EnvoyCertSecret }, help: "secret of Envoy's certificate"},

	{name: "host_task_image", field: func(c *Config) any { return &c.HostTaskImage }, help: "image of pods that work on a host"},
	{name: "host_task_namespace", built: true, field: func(c *Config) any { return &c.HostTaskNamespace }, help: "namespace of EKCO's own ConfigMap, and of pods that work on a host"},
	{name: "enable_internal_load_balancer", does: "run the internal load balancer", field: func(c *Config) any { return &c.EnableInternalLoadBalancer }, help: "run HAProxy on every node in front of the API servers"},
	{name: "internal_load_balancer_haproxy_image", field: func(c *Config) any { return &c.InternalLoadBalancerHAProxyImage }, help: "image of HAProxy"},
	{name: "internal_load_balancer_port", field: func(c *Config) any { return &c.InternalLoadBalancerPort }, check: port, help: "port of the internal load balancer; read, not used"},
	{name: "pod_image_overrides", does: "replace images in new pods", field: func(c *Config) any { return &c.PodImageOverrides }, help: "original=override pairs, separated by commas, of images to replace in new pods"},
	{name: "auto_approve_kubelet_csrs", does: "approve the serving certificates that kubelets ask for", field: func(c *Config) any { return &c.AutoApproveKubeletCSRs }, help: "approve the serving certificates that kubelets ask for"},
	{name: "restart_failed_envoy_pods", does: "delete Envoy pods that stay unready", field: func(c *Config) any { return &c.RestartFailedEnvoyPods }, help: "delete Envoy pods that stay unready"},
	{name: "envoy_pods_not_ready_duration", field: func(c *Config) any { return &c.EnvoyPodsNotReadyDuration }, check: positive, help: "how long an Envoy pod must be unready before it is deleted"},

	{name: "enable_ha_minio", does: "grow MinIO to several replicas", field: func(c *Config) any { return &c.EnableHAMinio }, help: "grow MinIO to several replicas as nodes join"},
	{name: "minio_namespace", field: func(c *Config) any { return &c.MinioNamespace }, help: "namespace of MinIO; may be empty"},
	{name: "minio_util_image", field: func(c *Config) any { return &c.MinioUtilImage }, help: "image of the pods that copy MinIO's data"},
	{name: "enable_ha_kotsadm", does: "grow kotsadm's database to several replicas", field: func(c *Config) any { return &c.EnableHAKotsadm }, help: "grow kotsadm's database to several replicas as nodes join"},
}

// meaning returns the help text, which says so if the setting does nothing.
func (k key) meaning() string {
	if k.built {
		return k.help
	}
	return k.help + " (has no effect yet)"
}

var keysByName = func() map[string]key {
	byName := make(map[string]key, len(keys))
	for _, k := range keys {
		byName[k.name] = k
	}
	return byName
}()

// Keys returns the names of all settings, in the order of the documentation.
func Keys() []string {
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// leastJournal keeps a limit from being so small that events leave all the time.
const leastJournal = 16 << 20

func roomForAJournal(value any) string {
	if b, ok := value.(*Bytes); ok && *b != 0 && *b < leastJournal {
		return "a size of at least 16Mi, like 512Mi or 2Gi, or 0 for no limit"
	}
	return ""
}

func positive(value any) string {
	if d, ok := value.(*time.Duration); ok && *d <= 0 {
		return "a duration above zero, like 5m"
	}
	return ""
}
