package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

type service struct{ corev1.Service }

// selectors has the selector of the Service for each state. A selector that matches no pod disables the Service. EKCO
// and kURL's installer use different ones for that. Do not change EKCO's, because every version of EKCO must know it.
var selectors = map[journal.MinioService]map[string]string{
	journal.MinioServiceSingle:    {Label: singleName},
	journal.MinioServiceHA:        {Label: App},
	journal.MinioServiceDisabled:  {"doesnotexist": "doesnotexist"},
	journal.MinioServiceInstaller: {Label: "does-not-exist"},
}

func (s service) selectedMinIO() journal.MinioService {
	for to, selector := range selectors {
		if maps.Equal(s.Spec.Selector, selector) {
			return to
		}
	}
	return journal.MinioServiceOther
}

// service returns the MinIO that the Service selects, or "" if there is no Service.
func (c *Client) service(ctx context.Context) (journal.MinioService, error) {
	to, _, err := c.ServiceTarget(ctx)
	return to, err
}

// ServiceTarget implements [API].
func (c *Client) ServiceTarget(ctx context.Context) (to journal.MinioService, version string, err error) {
	to, version, _, err = c.Selector(ctx)
	return to, version, err
}

// Selector implements [API].
func (c *Client) Selector(ctx context.Context) (to journal.MinioService, version, set string, err error) {
	read, exists, err := kube.Find[service](ctx, c.objects, ServiceRef(c.namespace))
	if err != nil || !exists {
		return "", "", "", err
	}
	return read.selectedMinIO(), read.ResourceVersion, read.lastSelectorChange(), nil
}

// LastSetByEKCO implements [API].
func (c *Client) LastSetByEKCO(ctx context.Context, version string) (bool, error) {
	read, err := kube.Get[service](ctx, c.objects, ServiceRef(c.namespace))
	if err != nil {
		return false, err
	}
	return read.ResourceVersion == version && read.selectedByEKCO(), nil
}

// lastSelectorChange returns a text with the Service's UID, the client that set the selector last, and the time. It
// returns "" if the API server does not report managed fields.
func (s service) lastSelectorChange() string {
	var set strings.Builder
	for _, entry := range s.ManagedFields {
		if selects(entry) && entry.Time != nil {
			fmt.Fprintf(&set, "%s %s %s %s;", s.UID, entry.Manager, entry.Operation, entry.Time)
		}
	}
	return set.String()
}

// selectedByEKCO reports whether EKCO was the last client that set the selector.
func (s service) selectedByEKCO() bool {
	return slices.ContainsFunc(s.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == kube.FieldManager && selects(entry)
	})
}

// selects reports whether the manager of the entry was the last client that set the selector. A client that changes a
// field becomes its manager. The whole selector is one field, because Kubernetes treats this map as atomic.
func selects(entry metav1.ManagedFieldsEntry) bool {
	var fields struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return false
	}
	_, is := fields.Spec["f:selector"]
	return is
}

// Switch implements [API].
func (c *Client) Switch(ctx context.Context, version string) (string, error) {
	return c.replace(ctx, version, journal.MinioServiceDisabled, journal.MinioServiceHA)
}

// Disable implements [API].
func (c *Client) Disable(ctx context.Context, version string) (string, error) {
	return c.replace(ctx, version, journal.MinioServiceSingle, journal.MinioServiceDisabled)
}

// replace changes the selector of the Service with that resource version.
func (c *Client) replace(ctx context.Context, version string, from, to journal.MinioService) (string, error) {
	ref := ServiceRef(c.namespace)
	raw, err := c.objects.PatchObject(ctx, ref, []kube.PatchOp{
		{Op: "test", Path: "/metadata/resourceVersion", Value: version},
		{Op: "test", Path: "/spec/selector", Value: selectors[from]},
		{Op: "replace", Path: "/spec/selector", Value: selectors[to]},
	})
	changed, err := kube.Decode[service](ref, raw, err)
	if err != nil {
		return "", fmt.Errorf("point %s to %s: %w", ref, to, err)
	}
	return changed.ResourceVersion, nil
}

// Point implements [API].
func (c *Client) Point(ctx context.Context, to journal.MinioService) error {
	leads, version, err := c.ServiceTarget(ctx)
	switch {
	case err != nil:
		return err
	case leads == to:
		return nil
	case leads == "":
		return fmt.Errorf("point %s to %s: %w", ServiceRef(c.namespace), to, kube.ErrNotFound)
	case leads != journal.MinioServiceDisabled:
		return fmt.Errorf("point %s to %s: %w: another client has made it select %s", ServiceRef(c.namespace), to, kube.ErrConflict, leads)
	}
	_, err = c.replace(ctx, version, journal.MinioServiceDisabled, to)
	return err
}
