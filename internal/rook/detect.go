package rook

import (
	"context"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Detect implements [API]. A missing namespace or CRD looks like a missing
// object: the API server answers 404 to all, unless it answers 403 first.
func (c *Client) Detect(ctx context.Context) (Installation, error) {
	_, err := c.cephCluster(ctx)
	switch {
	case errors.Is(err, kube.ErrForbidden):
		return c.unseen(ctx, err)
	case absent(err):
		return c.notThere(ctx, "there is no CephCluster "+Namespace+"/"+ClusterName)
	case err != nil:
		return Installation{}, err
	}
	operator, err := c.deployment(ctx, Operator)
	switch {
	case absent(err), errors.Is(err, kube.ErrForbidden):
		return Installation{Present: true, Why: "Rook's version is unknown: " + err.Error()}, nil
	case err != nil:
		return Installation{}, err
	}
	image := operator.image(Operator)
	version, ok := versionOf(image)
	if !ok {
		return Installation{Present: true, Why: noVersion(image)}, nil
	}
	return Installation{Present: true, Version: version}, nil
}

// noVersion says why the version of Rook is not known.
func noVersion(image string) string {
	return fmt.Sprintf("Rook's version is unknown: the tag of image %q of Deployment %s/%s is no version", image, Namespace, Operator)
}

// unseen tells a cluster without Rook from one whose Rook EKCO may not see.
// Permissions for Rook are granted only where Rook is installed, so EKCO must
// know without them: every account may ask which API groups there are, and
// kURL's account may read namespaces.
func (c *Client) unseen(ctx context.Context, forbidden error) (Installation, error) {
	err := c.exists(ctx, call{"get", "API groups", group}, []string{"apis", group})
	switch {
	case absent(err):
		return c.notThere(ctx, "the cluster has no API group "+group)
	case err != nil && !errors.Is(err, kube.ErrForbidden):
		return Installation{}, err
	}
	found, err := c.notThere(ctx, "there is no namespace "+Namespace)
	if err != nil || found.Gone {
		return found, err
	}
	return Installation{}, fmt.Errorf("tell whether there is a CephCluster: %w", forbidden)
}

// notThere returns that there is no Rook, and whether its namespace is gone too.
func (c *Client) notThere(ctx context.Context, why string) (Installation, error) {
	err := c.exists(ctx, call{"get", "namespaces", Namespace}, []string{"api/v1/namespaces", Namespace})
	if err != nil && !absent(err) && !errors.Is(err, kube.ErrForbidden) {
		return Installation{}, err
	}
	return Installation{Why: why, Gone: absent(err)}, nil
}

func (c *Client) exists(ctx context.Context, this call, path []string) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	return this.fail(c.rest.Get().AbsPath(path...).Do(ctx).Error())
}

func (c *Client) deployment(ctx context.Context, name string) (deployment, error) {
	var d deployment
	err := c.get(ctx, deployments, name, "", &d)
	return d, err
}
