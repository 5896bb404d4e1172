package minio

import (
	"context"
	"slices"
)

// BypassOfHost is the name by which [API].Bypasses reports a port of the node that reaches the pod.
const BypassOfHost = "hostPort or hostNetwork of Deployment minio"

// Bypasses implements [API]. Only Services of the same namespace can select its pods.
func (c *Client) Bypasses(ctx context.Context) (names []string, err error) {
	single, err := c.Single(ctx)
	if err != nil {
		return nil, err
	}
	ref := ServiceRef(c.namespace)
	list, err := c.objects.ListObjects(ctx, ref, "", "")
	if err != nil {
		return nil, err
	}
	for _, raw := range list {
		other, err := decode[service](ref, raw, nil)
		if err != nil {
			return nil, err
		}
		if other.Metadata.Name != singleName && slices.ContainsFunc(single.Own(), other.selects) {
			names = append(names, other.Metadata.Name)
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
