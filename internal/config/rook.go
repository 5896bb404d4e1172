package config

import "time"

// Rook are the settings of Rook's storage.
type Rook struct {
	RookVersion               string
	MaintainRookStorageNodes  bool
	OSDPurgeWait              time.Duration
	RookStorageNodes          string
	RookStorageNodesLabel     string
	ReconcileRookMDSPlacement bool
	ReconcileCephCSIResources bool
	CephBlockPool             string
	CephFilesystem            string
	CephObjectStore           string
	MinCephPoolReplication    int
	MaxCephPoolReplication    int
	RookPriorityClass         string
	RookMinimumNodeCount      int
	RookCephImage             string
	RookStorageClass          string
	StorageMigrationAuthToken string
}

func (r *Rook) keys() []key {
	return []key{
		{
			name: "rook_version", value: &r.RookVersion, built: true,
			help: "accepted for compatibility and ignored",
		},
		{
			name: "maintain_rook_storage_nodes", value: &r.MaintainRookStorageNodes, built: true,
			help: "let Ceph use the nodes that join, keep data in as many copies as there are hosts for them, raise the number of Ceph's daemons, and remove a purged node from Rook's list of storage nodes (its OSDs are always removed)",
		},
		{
			name: "osd_purge_wait", value: &r.OSDPurgeWait, built: true,
			help: "how long a purge leaves a node's OSDs marked out, so that Ceph copies their data, before it removes them",
		},
		{
			name: "rook_storage_nodes", value: &r.RookStorageNodes, built: true,
			help: "the installer's list of storage nodes; if it is not empty, EKCO does not change the CephCluster's list",
		},
		{
			name: "rook_storage_nodes_label", value: &r.RookStorageNodesLabel, built: true, check: labelPair,
			help: "key=value; if set, only nodes with this label are added to the storage nodes",
		},
		{
			name: "reconcile_rook_mds_placement", value: &r.ReconcileRookMDSPlacement, built: true,
			help: "run the MDS of the CephFilesystem ceph_filesystem on different hosts once there are two nodes, if the installer placed them for one",
		},
		{
			name: "reconcile_ceph_csi_resources", value: &r.ReconcileCephCSIResources, built: true,
			help: "from three nodes on, keep the resources of Ceph's CSI pods as EKCO sets them, with Rook 1.9 or newer",
		},
		{
			name: "ceph_block_pool", value: &r.CephBlockPool, built: true, byDefault: "replicapool",
			help: "name of the CephBlockPool whose copies EKCO raises and, when a host is gone for good, lowers; empty for none",
		},
		{
			name: "ceph_filesystem", value: &r.CephFilesystem, built: true, byDefault: "rook-shared-fs",
			help: "name of the CephFilesystem whose copies EKCO raises and, when a host is gone for good, lowers; empty for none",
		},
		{
			name: "ceph_object_store", value: &r.CephObjectStore, built: true, byDefault: "replicated",
			help: "name of the CephObjectStore whose copies EKCO raises and, when a host is gone for good, lowers; empty for none",
		},
		{
			name: "min_ceph_pool_replication", value: &r.MinCephPoolReplication, built: true, byDefault: "1",
			help: "minimum number of copies of data in these pools",
		},
		{
			name: "max_ceph_pool_replication", value: &r.MaxCephPoolReplication, built: true, byDefault: "3",
			help: "maximum number of copies of data in these pools",
		},
		{
			name: "rook_priority_class", value: &r.RookPriorityClass, built: true, byDefault: "node-critical",
			help: "priority class of the pods of Ceph's daemons and of Rook's agent, if they have none, as in Rook 1.0; empty for none",
		},
		{
			name: "rook_minimum_node_count", value: &r.RookMinimumNodeCount, does: "create a Ceph cluster", on: func() bool { return r.RookMinimumNodeCount > 2 },
			help: "number of nodes at which EKCO creates a Ceph cluster; active only above 2",
		},
		{
			name: "rook_ceph_image", value: &r.RookCephImage,
			help: "Ceph image of a cluster that EKCO creates",
		},
		{
			name: "rook_storage_class", value: &r.RookStorageClass, byDefault: "distributed",
			help: "storage class that Rook provides",
		},
		{
			name: "storage_migration_auth_token", value: &r.StorageMigrationAuthToken, secret: true,
			help: "bearer token that approves the storage migration; empty for none",
		},
	}
}
