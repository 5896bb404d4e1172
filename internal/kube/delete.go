package kube

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeleteNode implements [API].
func (c *Client) DeleteNode(ctx context.Context, name, uid string) error {
	return c.objects.DeleteObject(ctx, Ref{Version: "v1", Resource: "nodes", Name: name}, uid)
}

// ForceDeletePod implements [API].
func (c *Client) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	var grace int64
	ref := Ref{Version: "v1", Resource: "pods", Namespace: namespace, Name: name}
	return c.objects.end(ctx, ref, uid, metav1.DeleteOptions{GracePeriodSeconds: &grace})
}
