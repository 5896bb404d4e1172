package minio

import (
	"context"
	"slices"

	"github.com/replicatedhq/ekco/internal/kube"
)

// BypassOfHost is the name by which [API].Bypasses reports a port of the node that reaches the pod.
const BypassOfHost = "hostPort or hostNetwork of Deployment minio"

// Bypasses implements [API]. Only Services of the same namespace can select its pods.
func (c *Client) Bypasses(ctx context.Context) (names []string, err error) {
	single, err := c.Single(ctx)
	if err != nil {
		return nil, err
	}
	services, err := kube.List[service](ctx, c.objects, ServiceRef(c.namespace), "", "")
	if err != nil {
		return nil, err
	}
	for _, other := range services {
		if other.Name != singleName && slices.ContainsFunc(single.Own(), other.selects) {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	if slices.ContainsFunc(single.Own(), func(pod SinglePod) bool { return pod.OnHost }) {
		names = append(names, BypassOfHost)
	}
	return names, nil
}

// selects reports whether the Service selects the pod. Without a selector a Service forwards to
// Endpoints that others maintain.
func (s service) selects(pod SinglePod) bool {
	for label, value := range s.Spec.Selector {
		if pod.labels[label] != value {
			return false
		}
	}
	return len(s.Spec.Selector) > 0
}
