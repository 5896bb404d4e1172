// Package deploy holds the manifests EKCO is installed with. It has no code;
// its tests compare the manifests with what an installation depends on.
//
//	namespace.yaml      namespace kurl, for clusters without kURL
//	rbac.yaml           the service account, and its permissions in every cluster
//	configmap.yaml      the configuration
//	deployment.yaml     the operator
//	service.yaml        its HTTP port
//	kustomization.yaml  these files but the namespace, for "kubectl apply -k deploy"
//	rook/               the permissions for Rook, if namespace rook-ceph exists
//	minio/              the permissions for MinIO, if namespace minio exists
//	kotsadm/            the permissions for kotsadm in namespace default
//	optional/           more permissions, which EKCO uses if it has them
//	host/               commands for the hosts
//	image/              the container image, a Go module of its own
//	kurl/               the add-on for kURL's installer, which is built of these manifests
//
// EKCO works without the permissions in the directories: it does not do what they are for,
// and "ekco status" lists that.
package deploy
