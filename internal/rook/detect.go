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
		return Installation{Why: "there is no CephCluster " + Namespace + "/" + ClusterName}, nil
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
		return Installation{Present: true, Why: fmt.Sprintf(
			"Rook's version is unknown: the tag of image %q of Deployment %s/%s is no version", image, Namespace, Operator)}, nil
	}
	return Installation{Present: true, Version: version}, nil
}

// unseen tells a cluster without Rook from one whose Rook EKCO may not see.
// Permissions for Rook are granted only where Rook is installed, so EKCO must
// know without them: every account may ask which API groups there are, and
// kURL's account may read namespaces.
func (c *Client) unseen(ctx context.Context, forbidden error) (Installation, error) {
	for _, sign := range []struct {
		call call
		path []string
		why  string
	}{
		{call{"get", "API groups", group}, []string{"apis", group}, "the cluster has no API group " + group},
		{call{"get", "namespaces", Namespace}, []string{"api/v1/namespaces", Namespace}, "there is no namespace " + Namespace},
	} {
		switch err := c.exists(ctx, sign.call, sign.path); {
		case absent(err):
			return Installation{Why: sign.why}, nil
		case err != nil && !errors.Is(err, kube.ErrForbidden):
			return Installation{}, err
		}
	}
	return Installation{}, fmt.Errorf("tell whether there is a CephCluster: %w", forbidden)
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
