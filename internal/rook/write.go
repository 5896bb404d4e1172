package rook

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/replicatedhq/ekco/internal/kube"
)

// ScaleDown implements [API]. It reads and replaces the whole object, because kURL's permissions allow neither a patch
// nor the scale subresource.
func (c *Client) ScaleDown(ctx context.Context, name, uid string) error {
	return kube.Retry(kube.ErrConflict, func() error { return c.scaleDown(ctx, deploymentRef(name), uid) })
}

func (c *Client) scaleDown(ctx context.Context, ref kube.Ref, uid string) error {
	raw, err := c.objects.ReadObject(ctx, ref)
	live, err := kube.Decode[appsv1.Deployment](ref, raw, err)
	switch {
	case err != nil:
		return err
	case string(live.UID) != uid:
		return fmt.Errorf("scale down %s: %w: it has UID %s, not %s; nothing was changed", ref, kube.ErrOtherUID, live.UID, uid)
	case live.Spec.Replicas != nil && *live.Spec.Replicas == 0:
		return nil
	}
	var body json.RawMessage
	body, err = kube.Edit(ref, raw, func(object map[string]any) error {
		return unstructured.SetNestedField(object, int64(0), "spec", "replicas")
	})
	if err == nil {
		_, err = c.objects.ReplaceObject(ctx, ref, body)
	}
	return err
}

// DeleteDeployment implements [API].
func (c *Client) DeleteDeployment(ctx context.Context, name, uid string) error {
	return c.objects.DeleteObject(ctx, deploymentRef(name), uid)
}
