package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The mirror of open actions is key MirrorKey of ConfigMap MirrorName in
// EKCO's namespace.
const (
	MirrorName = "ekco-journal"
	MirrorKey  = "actions.json"
)

const mirrorPurpose = "Open actions of EKCO, copied from its journal. " +
	"A new EKCO that finds an empty journal finishes them. Deleting this loses that safety net and nothing else."

// ReadMirror returns the mirror's content, empty when the ConfigMap lacks the
// key, and its resource version. See [API].
func (c *Client) ReadMirror(ctx context.Context) ([]byte, string, error) {
	var mirror corev1.ConfigMap
	if err := c.get(ctx, "configmaps", c.namespace, MirrorName, &mirror); err != nil {
		return nil, "", err
	}
	return []byte(mirror.Data[MirrorKey]), mirror.ResourceVersion, nil
}

// WriteMirror creates or replaces the mirror. See [API].
func (c *Client) WriteMirror(ctx context.Context, content []byte, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	mirror := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: MirrorName, Namespace: c.namespace, ResourceVersion: version,
			Annotations: map[string]string{"ekco.kurl.sh/purpose": mirrorPurpose},
		},
		Data: map[string]string{MirrorKey: string(content)},
	}
	this := call{"update", "configmaps", fullName(c.namespace, MirrorName)}
	request := c.core.Put().Name(MirrorName)
	if version == "" {
		this.verb = "create"
		request = c.core.Post()
	}
	var written corev1.ConfigMap
	err := request.Namespace(c.namespace).Resource("configmaps").Body(mirror).Do(ctx).Into(&written)
	if version != "" && errors.Is(Sentinel(err), ErrNotFound) {
		return "", fmt.Errorf("%s: %w: somebody deleted it; create it anew", this, ErrConflict)
	}
	return written.ResourceVersion, this.fail(err)
}
