package rook

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// Detect implements [API]. The API server answers 404 if the namespace, the CRD or the object is missing, but 403 if
// EKCO may not read it.
func (c *Client) Detect(ctx context.Context) (Installation, error) {
	_, err := c.cephCluster(ctx)
	switch {
	case errors.Is(err, kube.ErrForbidden):
		return c.detectForbidden(ctx, err)
	case isAbsent(err):
		return c.notInstalled(ctx, "there is no CephCluster "+Namespace+"/"+ClusterName)
	case err != nil:
		return Installation{}, err
	}
	operator, err := c.deployment(ctx, Operator)
	switch {
	case isAbsent(err), errors.Is(err, kube.ErrForbidden):
		return Installation{Present: true, Why: "Rook's version is unknown: " + err.Error()}, nil
	case err != nil:
		return Installation{}, err
	}
	image := imageOf(&operator, Operator)
	version, ok := versionOf(image)
	if !ok {
		return Installation{Present: true, Why: noVersion(image)}, nil
	}
	return Installation{Present: true, Version: version}, nil
}

// noVersion returns the reason why the version of Rook is unknown.
func noVersion(image string) string {
	return fmt.Sprintf("Rook's version is unknown: the tag of image %q of Deployment %s/%s is not a version", image, Namespace, Operator)
}

// detectForbidden finds out whether Rook is installed although EKCO may not read its objects. EKCO gets permissions for
// Rook only if Rook is installed. Without them it can use two other calls: every account may list the API groups, and
// kURL's account may read namespaces.
func (c *Client) detectForbidden(ctx context.Context, forbidden error) (Installation, error) {
	err := c.exists(ctx, call{"get", "API groups", group}, []string{"apis", group})
	switch {
	case isAbsent(err):
		return c.notInstalled(ctx, "the cluster has no API group "+group)
	case err != nil && !errors.Is(err, kube.ErrForbidden):
		return Installation{}, err
	}
	found, err := c.notInstalled(ctx, "there is no namespace "+Namespace)
	if err != nil || found.Gone {
		return found, err
	}
	return Installation{}, fmt.Errorf("look for the CephCluster: %w", forbidden)
}

// notInstalled returns an Installation without Rook. It sets Gone if Rook's namespace does not exist.
func (c *Client) notInstalled(ctx context.Context, why string) (Installation, error) {
	err := c.exists(ctx, call{"get", "namespaces", Namespace}, []string{"api/v1/namespaces", Namespace})
	if err != nil && !isAbsent(err) && !errors.Is(err, kube.ErrForbidden) {
		return Installation{}, err
	}
	return Installation{Why: why, Gone: isAbsent(err)}, nil
}

func (c *Client) exists(ctx context.Context, this call, path []string) error {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	return this.fail(c.rest.Get().AbsPath(path...).Do(ctx).Error())
}

func (c *Client) deployment(ctx context.Context, name string) (appsv1.Deployment, error) {
	var d appsv1.Deployment
	err := c.get(ctx, deployments, name, "", &d)
	return d, err
}
