package minio

import (
	"context"
	"slices"

	"github.com/replicatedhq/ekco/internal/kube"
)

// BypassOfHost is the name that [API].Bypasses returns if clients can reach the pod at a port of its node.
const BypassOfHost = "hostPort or hostNetwork of Deployment minio"

// Bypasses implements [API]. It reads only one namespace, because a Service selects pods of its own namespace.
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
		if other.Name != singleName && slices.ContainsFunc(single.Own(), other.matches) {
			names = append(names, other.Name)
		}
	}
	slices.Sort(names)
	if slices.ContainsFunc(single.Own(), func(pod SinglePod) bool { return pod.OnHost }) {
		names = append(names, BypassOfHost)
	}
	return names, nil
}

// matches reports whether the Service selects the pod. A Service without a selector selects no pods: it forwards to
// Endpoints that another client maintains.
func (s service) matches(pod SinglePod) bool {
	for label, value := range s.Spec.Selector {
		if pod.labels[label] != value {
			return false
		}
	}
	return len(s.Spec.Selector) > 0
}
