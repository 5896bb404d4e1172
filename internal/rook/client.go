package rook

import (
	"k8s.io/client-go/rest"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec"
)

// Client is the [API] of Rook in a real cluster.
type Client struct {
	objects kube.Objects
	exec    *podexec.Client
}

var _ API = (*Client)(nil)

// NewClient returns a client for the API server of config. It does not change config and sends no request.
func NewClient(config *rest.Config, options kube.Options) (*Client, error) {
	objects, err := kube.NewObjects(config, options)
	if err != nil {
		return nil, err
	}
	exec, err := podexec.New(config, options.UserAgent)
	return &Client{objects, exec}, err
}

// group is the API group of Rook's own objects.
const group = "ceph.rook.io"

// deploymentRef names a Deployment in Rook's namespace, or all of them if the name is empty.
func deploymentRef(name string) kube.Ref {
	return kube.Ref{Group: "apps", Version: "v1", Resource: "deployments", Namespace: Namespace, Name: name}
}

// podsRef names all pods in Rook's namespace.
func podsRef() kube.Ref { return kube.Ref{Version: "v1", Resource: "pods", Namespace: Namespace} }
