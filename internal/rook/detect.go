package rook

import (
	"context"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Detect implements [API]. A missing namespace or CRD looks like a missing
// object: the API server answers 404 to all.
func (c *Client) Detect(ctx context.Context) (Installation, error) {
	_, err := c.cephCluster(ctx)
	switch {
	case errors.Is(err, kube.ErrForbidden):
		return Installation{Why: "EKCO may not read CephClusters in namespace " + Namespace}, nil
	case absent(err):
		return Installation{Why: "there is no CephCluster " + Namespace + "/" + ClusterName}, nil
	case err != nil:
		return Installation{}, err
	}
	operator, err := c.deployment(ctx, Operator)
	switch {
	case absent(err):
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

func (c *Client) deployment(ctx context.Context, name string) (deployment, error) {
	var d deployment
	err := c.get(ctx, deployments, name, "", &d)
	return d, err
}
