package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/replicatedhq/ekco/internal/kube"
)

// ScaleDown implements [API]. It reads and replaces the whole object, because kURL's permissions allow neither a patch
// nor the scale subresource.
func (c *Client) ScaleDown(ctx context.Context, name, uid string) error {
	return kube.Retry(kube.ErrConflict, func() error { return c.scaleDown(ctx, name, uid) })
}

func (c *Client) scaleDown(ctx context.Context, name, uid string) error {
	var raw json.RawMessage
	if err := c.get(ctx, deployments, name, "", &raw); err != nil {
		return err
	}
	ref := kube.Ref{Resource: deployments.plural, Namespace: Namespace, Name: name}
	live, err := kube.Decode[appsv1.Deployment](ref, raw, nil)
	switch {
	case err != nil:
		return err
	case string(live.UID) != uid:
		return otherUID(call{"update", "deployments", name}, live.UID, uid)
	case live.Spec.Replicas != nil && *live.Spec.Replicas == 0:
		return nil
	}
	body, err := kube.Edit(ref, raw, func(object map[string]any) error {
		return unstructured.SetNestedField(object, int64(0), "spec", "replicas")
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err = c.rest.Put().AbsPath(deployments.path(name)...).SetHeader("Content-Type", runtime.ContentTypeJSON).Body([]byte(body)).Do(ctx).Error()
	return call{"update", "deployments", name}.fail(err)
}

func otherUID(this call, has types.UID, wanted string) error {
	return fmt.Errorf("%s: %w: it has UID %s, not %s; nothing was changed", this, kube.ErrOtherUID, has, wanted)
}

// DeleteDeployment implements [API].
func (c *Client) DeleteDeployment(ctx context.Context, name, uid string) error {
	this := call{"delete", "deployments", name}
	if uid == "" {
		return fmt.Errorf("%s: its UID is unknown; EKCO deletes nothing by name alone", this)
	}
	expected, background := types.UID(uid), metav1.DeletePropagationBackground
	body, err := json.Marshal(metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions:     &metav1.Preconditions{UID: &expected},
		PropagationPolicy: &background,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", this, err)
	}
	deleting, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err = this.fail(c.rest.Delete().AbsPath(deployments.path(name)...).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(deleting).Error())
	if !errors.Is(err, kube.ErrConflict) {
		return err
	}
	// The precondition failed. Read the Deployment to find the reason.
	live, readErr := c.deployment(ctx, name)
	switch {
	case errors.Is(readErr, kube.ErrNotFound):
		return readErr
	case readErr == nil && string(live.UID) != uid:
		return otherUID(this, live.UID, uid)
	}
	return err
}
