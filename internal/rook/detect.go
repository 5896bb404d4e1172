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
	version, unknown, err := versionIn(ctx, c.objects)
	if err != nil {
		return Installation{}, err
	}
	return Installation{Present: true, Version: version, Why: unknown}, nil
}

// versionIn returns the version of Rook's operator, or the reason why the version is unknown.
func versionIn(ctx context.Context, objects kube.Objects) (version Version, unknown string, err error) {
	operator, err := kube.Get[appsv1.Deployment](ctx, objects, OperatorRef())
	switch sentinel := kube.Sentinel(err); {
	case errors.Is(sentinel, kube.ErrNotFound), errors.Is(sentinel, kube.ErrForbidden):
		return Version{}, "Rook's version is unknown: " + err.Error(), nil
	case err != nil:
		return Version{}, "", err
	}
	image := imageOf(&operator, Operator)
	version, known := versionOf(image)
	if !known {
		unknown = fmt.Sprintf("Rook's version is unknown: the tag of image %q of Deployment %s/%s is not a version", image, Namespace, Operator)
	}
	return version, unknown, nil
}

// detectForbidden finds out whether Rook is installed although EKCO may not read its objects. EKCO gets permissions for
// Rook only if Rook is installed. Without them it can use two other calls: every account may list the API groups, and
// kURL's account may read namespaces.
func (c *Client) detectForbidden(ctx context.Context, forbidden error) (Installation, error) {
	_, err := c.objects.ReadObject(ctx, kube.Ref{Group: group})
	switch {
	case isAbsent(err):
		return c.notInstalled(ctx, "the cluster has no API group "+group)
	case err != nil && !errors.Is(err, kube.ErrForbidden):
		return Installation{}, fmt.Errorf("look for the API group %s: %w", group, err)
	}
	found, err := c.notInstalled(ctx, "there is no namespace "+Namespace)
	if err != nil || found.Gone {
		return found, err
	}
	return Installation{}, fmt.Errorf("look for the CephCluster: %w", forbidden)
}

// notInstalled returns an Installation without Rook. It sets Gone if Rook's namespace does not exist.
func (c *Client) notInstalled(ctx context.Context, why string) (Installation, error) {
	_, err := c.objects.ReadObject(ctx, NamespaceRef())
	if err != nil && !isAbsent(err) && !errors.Is(err, kube.ErrForbidden) {
		return Installation{}, err
	}
	return Installation{Why: why, Gone: isAbsent(err)}, nil
}

// isAbsent reports whether an error means that the object, or all of Rook, does not exist. It returns false for a
// forbidden read.
func isAbsent(err error) bool { return errors.Is(err, kube.ErrNotFound) }
