// Package deploy holds the manifests EKCO is installed with. It has no code;
// its tests compare the manifests with what an installation depends on.
//
//	namespace.yaml      namespace kurl
//	rbac.yaml           service account and the permissions every cluster has
//	rbac-rook.yaml      the same for Rook, applied when namespace rook-ceph exists
//	rbac-minio.yaml     the same for MinIO, applied when MinIO is installed
//	rbac-kotsadm.yaml   the same for kotsadm, applied when kotsadm is installed
//	rbac-optional.yaml  what EKCO makes use of if it is given more
//	configmap.yaml      the configuration
//	deployment.yaml     the operator
//	service.yaml        its HTTP port
//	host/               commands for the hosts
//	image/              the container image, a Go module of its own
//
// EKCO works without rbac-optional.yaml and without the conditional files: what
// it may not do, it leaves out, and "ekco status" lists it.
package deploy
