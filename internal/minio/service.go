package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/journal"
)

// service is the part that EKCO reads.
type service struct {
	Metadata struct {
		metadata
		ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
	} `json:"metadata"`
	Spec struct {
		Selector map[string]string `json:"selector"`
	} `json:"spec"`
}

// selectors are where the Service leads with each. A selector that no pod has makes it
// lead nowhere; EKCO has one for that, which every version of it knows, and kURL's
// installer has another.
var selectors = map[journal.MinioService]map[string]string{
	journal.MinioServiceSingle:    {Label: singleName},
	journal.MinioServiceHA:        {Label: App},
	journal.MinioServiceDisabled:  {"doesnotexist": "doesnotexist"},
	journal.MinioServiceInstaller: {Label: "does-not-exist"},
}

func (s service) leads() journal.MinioService {
	for to, selector := range selectors {
		if maps.Equal(s.Spec.Selector, selector) {
			return to
		}
	}
	return journal.MinioServiceOther
}

// service returns where the Service leads, "" if there is none.
func (c *Client) service(ctx context.Context) (journal.MinioService, error) {
	to, _, err := c.Leads(ctx)
	return to, err
}

// Leads implements [API].
func (c *Client) Leads(ctx context.Context) (to journal.MinioService, version string, err error) {
	read, exists, err := found[service](ctx, c, ServiceRef(c.namespace))
	if err != nil || !exists {
		return "", "", err
	}
	return read.leads(), read.Metadata.ResourceVersion, nil
}

// Ours implements [API].
func (c *Client) Ours(ctx context.Context, version string) (bool, error) {
	read, err := get[service](ctx, c, ServiceRef(c.namespace))
	if err != nil {
		return false, err
	}
	return read.Metadata.ResourceVersion == version && read.selectedByEKCO(), nil
}

// selectedByEKCO reports whether the selector is what an EKCO has set: whoever changes it takes
// it over in the fields that the API server says are managed by whom. It is one field there, as
// the map is atomic.
func (s service) selectedByEKCO() bool {
	for _, entry := range s.Metadata.ManagedFields {
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if entry.Manager != kube.FieldManager || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, is := fields.Spec["f:selector"]; is {
			return true
		}
	}
	return false
}

// Switch implements [API].
func (c *Client) Switch(ctx context.Context, version string) (string, error) {
	ref := ServiceRef(c.namespace)
	raw, err := c.objects.PatchObject(ctx, ref, []kube.PatchOp{
		{Op: "test", Path: "/metadata/resourceVersion", Value: version},
		{Op: "test", Path: "/spec/selector", Value: selectors[journal.MinioServiceDisabled]},
		{Op: "replace", Path: "/spec/selector", Value: selectors[journal.MinioServiceHA]},
	})
	switched, err := decode[service](ref, raw, err)
	if err != nil {
		return "", fmt.Errorf("point %s to %s: %w", ref, journal.MinioServiceHA, err)
	}
	return switched.Metadata.ResourceVersion, nil
}

// Point implements [API].
func (c *Client) Point(ctx context.Context, to journal.MinioService) error {
	return c.point(ctx, journal.MinioServiceDisabled, to)
}

// Disable implements [API].
func (c *Client) Disable(ctx context.Context) error {
	return c.point(ctx, journal.MinioServiceSingle, journal.MinioServiceDisabled)
}

// point has a Service that leads to one lead to another.
func (c *Client) point(ctx context.Context, from, to journal.MinioService) error {
	ref := ServiceRef(c.namespace)
	now, err := get[service](ctx, c, ref)
	switch {
	case err != nil:
		return err
	case now.leads() == to:
		return nil
	case now.leads() != from:
		return fmt.Errorf("point %s to %s: %w: somebody has it lead to %s", ref, to, kube.ErrConflict, now.leads())
	}
	_, err = c.objects.PatchObject(ctx, ref, []kube.PatchOp{
		{Op: "test", Path: "/metadata/uid", Value: now.Metadata.UID},
		{Op: "test", Path: "/spec/selector", Value: selectors[from]},
		{Op: "replace", Path: "/spec/selector", Value: selectors[to]},
	})
	if err != nil {
		return fmt.Errorf("point %s to %s: %w", ref, to, err)
	}
	return nil
}
