package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// DeleteNode implements [API].
func (c *Client) DeleteNode(ctx context.Context, name, uid string) error {
	return c.delete(ctx, "nodes", "", name, uid, metav1.DeleteOptions{}, &corev1.Node{})
}

// ForceDeletePod implements [API].
func (c *Client) ForceDeletePod(ctx context.Context, namespace, name, uid string) error {
	var grace int64
	options := metav1.DeleteOptions{GracePeriodSeconds: &grace}
	return c.delete(ctx, "pods", namespace, name, uid, options, &corev1.Pod{})
}

// object is any API object.
type object interface {
	runtime.Object
	metav1.Object
}

// delete deletes the object only if it has the UID. After a conflict, it reads the object into found to learn the
// reason. found must be empty.
func (c *Client) delete(ctx context.Context, resource, namespace, name, uid string, options metav1.DeleteOptions, found object) error {
	if uid == "" {
		return fmt.Errorf("delete %s %s: its UID is unknown; EKCO deletes nothing by name alone", resource, fullName(namespace, name))
	}
	expected := types.UID(uid)
	options.Preconditions = &metav1.Preconditions{UID: &expected}
	deleting, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.core.Delete().NamespaceIfScoped(namespace, namespace != "").
		Resource(resource).Name(name).Body(&options).Do(deleting).Error()
	this := call{"delete", resource, fullName(namespace, name)}
	if !errors.Is(Sentinel(err), ErrConflict) {
		return this.fail(err)
	}
	readErr := c.get(ctx, resource, namespace, name, found)
	switch {
	case errors.Is(readErr, ErrNotFound):
		return readErr
	case readErr == nil && found.GetUID() != expected:
		return fmt.Errorf("%s: %w: it has UID %s, not %s; nothing was deleted", this, ErrOtherUID, found.GetUID(), uid)
	}
	return this.fail(err)
}
