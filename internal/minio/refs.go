package minio

import (
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Label and App are the label of the replicas' pods.
const (
	Label = "app"
	App   = "ha-minio"
)

const (
	// singleName is that of the Deployment, of the label of its pod, and of the Service.
	singleName = "minio"
	// desiredScale says on the StatefulSet how many replicas EKCO shall give it.
	desiredScale = "kurl.sh/desired-scale"
)

// StatefulSetRef names the StatefulSet of the highly available MinIO.
func StatefulSetRef(namespace string) kube.Ref {
	return kube.Ref{Group: "apps", Version: "v1", Resource: "statefulsets", Namespace: namespace, Name: App}
}

// DeploymentRef names the Deployment of the single one.
func DeploymentRef(namespace string) kube.Ref {
	return kube.Ref{Group: "apps", Version: "v1", Resource: "deployments", Namespace: namespace, Name: singleName}
}

// ReplicaSetRef names a ReplicaSet, by which a Deployment has its pods.
func ReplicaSetRef(namespace, name string) kube.Ref {
	return kube.Ref{Group: "apps", Version: "v1", Resource: "replicasets", Namespace: namespace, Name: name}
}

// ServiceRef names the Service that clients use.
func ServiceRef(namespace string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "services", Namespace: namespace, Name: singleName}
}

// PodRef names a replica's pod.
func PodRef(namespace string, i int) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: namespace, Name: fmt.Sprintf("%s-%d", App, i)}
}

// ClaimRef names the claim of a replica's pod.
func ClaimRef(namespace, pod string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "persistentvolumeclaims", Namespace: namespace, Name: "minio-data-" + pod}
}

// SingleClaimRef names the claim of the single MinIO. With a hostPath it has none.
func SingleClaimRef(namespace string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "persistentvolumeclaims", Namespace: namespace, Name: "minio-pv-claim"}
}

// SecretRef names the Secret with the credentials of both.
func SecretRef(namespace string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "secrets", Namespace: namespace, Name: "minio-credentials"}
}

// NodeRef names a Node.
func NodeRef(name string) kube.Ref { return kube.Ref{Version: "v1", Resource: "nodes", Name: name} }

// SinglePodRef names a pod of the single MinIO.
func SinglePodRef(namespace, pod string) kube.Ref { return namedPodRef(namespace, pod) }

// namedPodRef names a pod.
func namedPodRef(namespace, pod string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "pods", Namespace: namespace, Name: pod}
}

func scaleRef(namespace string) kube.Ref {
	ref := StatefulSetRef(namespace)
	ref.Subresource = "scale"
	return ref
}
