package minio

import (
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Label and App are the name and the value of the label of the replicas' pods.
const (
	Label = "app"
	App   = "ha-minio"
)

const (
	// singleName is the name of the Deployment, the label of its pod, and the name of the Service.
	singleName = "minio"
	// desiredScale is the StatefulSet's annotation with the wanted number of replicas.
	desiredScale = "kurl.sh/desired-scale"
)

// StatefulSetRef names the StatefulSet of the highly available MinIO.
func StatefulSetRef(namespace string) kube.Ref {
	return kube.Ref{Group: "apps", Version: "v1", Resource: "statefulsets", Namespace: namespace, Name: App}
}

// DeploymentRef names the Deployment of standalone MinIO.
func DeploymentRef(namespace string) kube.Ref {
	return kube.Ref{Group: "apps", Version: "v1", Resource: "deployments", Namespace: namespace, Name: singleName}
}

// ReplicaSetRef names a ReplicaSet, which owns the pods of a Deployment.
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

// SingleClaimRef names the claim of standalone MinIO. An installation with a hostPath has no claim.
func SingleClaimRef(namespace string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "persistentvolumeclaims", Namespace: namespace, Name: "minio-pv-claim"}
}

// SecretRef names the Secret with the credentials of both MinIOs.
func SecretRef(namespace string) kube.Ref {
	return kube.Ref{Version: "v1", Resource: "secrets", Namespace: namespace, Name: "minio-credentials"}
}

// NodeRef names a Node.
func NodeRef(name string) kube.Ref { return kube.Ref{Version: "v1", Resource: "nodes", Name: name} }

// SinglePodRef names a pod of standalone MinIO.
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
