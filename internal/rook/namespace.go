package rook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
)

// inNamespace returns kube.ErrNotFound for objects in Rook's namespace if the namespace is gone or being deleted. The
// API server then returns kube.ErrForbidden, because the roles with EKCO's permissions are deleted with the namespace.
type inNamespace struct{ kube.Objects }

// NamespaceRef names Rook's namespace.
func NamespaceRef() kube.Ref { return kube.Ref{Version: "v1", Resource: "namespaces", Name: Namespace} }

// ReadObject implements [kube.Objects].
func (o inNamespace) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	raw, err := o.Objects.ReadObject(ctx, ref)
	return raw, o.orNotFoundIfGone(ctx, ref, err)
}

// ListObjects implements [kube.Objects].
func (o inNamespace) ListObjects(ctx context.Context, ref kube.Ref, label, value string) ([]json.RawMessage, error) {
	found, err := o.Objects.ListObjects(ctx, ref, label, value)
	return found, o.orNotFoundIfGone(ctx, ref, err)
}

// orNotFoundIfGone returns kube.ErrNotFound if the namespace is gone or being deleted. Otherwise it returns the error of the
// call.
func (o inNamespace) orNotFoundIfGone(ctx context.Context, ref kube.Ref, err error) error {
	if ref.Namespace != Namespace || !errors.Is(kube.Sentinel(err), kube.ErrForbidden) {
		return err
	}
	namespace, readErr := kube.Get[corev1.Namespace](ctx, o.Objects, NamespaceRef())
	switch {
	case errors.Is(kube.Sentinel(readErr), kube.ErrNotFound):
		return fmt.Errorf("%w: there is no namespace %s", kube.ErrNotFound, Namespace)
	case readErr == nil && namespace.DeletionTimestamp != nil:
		return fmt.Errorf("%w: namespace %s is being deleted, and EKCO's permissions with it", kube.ErrNotFound, Namespace)
	}
	return err
}
