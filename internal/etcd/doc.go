// Package etcd reads and changes the etcd cluster of kube-apiserver. The interface [API] lists members, checks their
// health and removes a member. [Client] implements it with etcd's own client. Two pure decisions are separate from it:
// [Match] and [Confirm] find the member that belonged to a dead node, and [ProjectRemoval] computes the cluster after a
// removal. The subpackage etcdsim simulates a cluster for crash and storm tests.
//
// Importing the package silences gRPC's log, which would otherwise go to standard error; see [Client] to enable
// it.
package etcd
