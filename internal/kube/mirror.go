package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EKCO stores the mirror of open actions under key MirrorKey of ConfigMap MirrorName in its namespace. If one ConfigMap
// is too small, more ConfigMaps have the other parts under the same key. They have the label mirrorPart.
const (
	MirrorName = "ekco-journal"
	MirrorKey  = "actions.json"
	mirrorPart = "ekco.kurl.sh/mirror-part"
)

const mirrorPurpose = "Open actions and pauses of EKCO, copied from its journal. " +
	"A new EKCO that finds an empty journal finishes them. Deleting this loses that safety net and nothing else."

// ReadMirror implements [API]. The content is empty if the ConfigMap lacks the key.
func (c *Client) ReadMirror(ctx context.Context) ([]byte, string, error) {
	var mirror corev1.ConfigMap
	if err := c.get(ctx, "configmaps", c.namespace, MirrorName, &mirror); err != nil {
		return nil, "", err
	}
	return []byte(mirror.Data[MirrorKey]), mirror.ResourceVersion, nil
}

// WriteMirror implements [API].
func (c *Client) WriteMirror(ctx context.Context, content []byte, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	mirror := c.mirrorOf(MirrorName, content)
	mirror.ResourceVersion = version
	this := call{"update", "configmaps", fullName(c.namespace, MirrorName)}
	request := c.core.Put().Name(MirrorName)
	if version == "" {
		this.verb = "create"
		request = c.core.Post()
	}
	var written corev1.ConfigMap
	err := request.Namespace(c.namespace).Resource("configmaps").Body(mirror).Do(ctx).Into(&written)
	if version != "" && errors.Is(Sentinel(err), ErrNotFound) {
		return "", fmt.Errorf("%s: %w: it was deleted; create it again", this, ErrConflict)
	}
	return written.ResourceVersion, this.fail(err)
}

func (c *Client) mirrorOf(name string, content []byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: c.namespace, Annotations: map[string]string{"ekco.kurl.sh/purpose": mirrorPurpose},
		},
		Data: map[string]string{MirrorKey: string(content)},
	}
}

// MirrorParts implements [API].
func (c *Client) MirrorParts(ctx context.Context) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	var list corev1.ConfigMapList
	options := metav1.ListOptions{LabelSelector: mirrorPart}
	err := c.core.Get().Namespace(c.namespace).Resource("configmaps").VersionedParams(&options, c.params).Do(ctx).Into(&list)
	if err != nil {
		return nil, call{"list", "configmaps", c.namespace}.fail(err)
	}
	parts := make(map[string][]byte, len(list.Items))
	for _, part := range list.Items {
		parts[part.Name] = []byte(part.Data[MirrorKey])
	}
	return parts, nil
}

// WriteMirrorPart implements [API].
func (c *Client) WriteMirrorPart(ctx context.Context, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	part := c.mirrorOf(name, content)
	part.Labels = map[string]string{mirrorPart: "true"}
	this := call{"create", "configmaps", fullName(c.namespace, name)}
	err := c.core.Post().Namespace(c.namespace).Resource("configmaps").Body(part).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		this.verb = "update"
		err = c.core.Put().Name(name).Namespace(c.namespace).Resource("configmaps").Body(part).Do(ctx).Error()
	}
	return this.fail(err)
}

// DeleteMirrorPart implements [API].
func (c *Client) DeleteMirrorPart(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err := c.core.Delete().Namespace(c.namespace).Resource("configmaps").Name(name).Do(ctx).Error()
	return call{"delete", "configmaps", fullName(c.namespace, name)}.fail(err)
}
