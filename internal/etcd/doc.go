// Package etcd is EKCO's view of the etcd cluster under kube-apiserver: the
// narrow interface [API] (who the members are, how they are, remove one), one
// real implementation over etcd's own client, and two pure judgements on what
// was read: which member belonged to a dead node ([Match], [Confirm]) and what
// a removal would leave ([ProjectRemoval]). The subpackage etcdsim simulates a
// cluster for crash and storm tests.
//
// Importing the package silences the log of gRPC, which otherwise writes to
// standard error past EKCO's own log; see [Client] for how to hear it.
package etcd
