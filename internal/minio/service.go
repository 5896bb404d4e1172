package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	to, version, _, err = c.Selector(ctx)
	return to, version, err
}

// Selector implements [API].
func (c *Client) Selector(ctx context.Context) (to journal.MinioService, version, set string, err error) {
	read, exists, err := found[service](ctx, c, ServiceRef(c.namespace))
	if err != nil || !exists {
		return "", "", "", err
	}
	return read.leads(), read.Metadata.ResourceVersion, read.set(), nil
}

// Ours implements [API].
func (c *Client) Ours(ctx context.Context, version string) (bool, error) {
	read, err := get[service](ctx, c, ServiceRef(c.namespace))
	if err != nil {
		return false, err
	}
	return read.Metadata.ResourceVersion == version && read.selectedByEKCO(), nil
}

// set says who set the selector and when, in which Service; "" where the API server does not say it.
func (s service) set() string {
	var set strings.Builder
	for _, entry := range s.Metadata.ManagedFields {
		if selects(entry) && entry.Time != nil {
			fmt.Fprintf(&set, "%s %s %s %s;", s.Metadata.UID, entry.Manager, entry.Operation, entry.Time)
		}
	}
	return set.String()
}

// selectedByEKCO reports whether the selector is what an EKCO has set.
func (s service) selectedByEKCO() bool {
	return slices.ContainsFunc(s.Metadata.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == kube.FieldManager && selects(entry)
	})
}

// selects reports whether the entry's manager has set the selector: whoever changes it takes it over in the
// fields that the API server says are managed by whom. It is one field there, as the map is atomic.
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

// replace has the Service of that resource version, which leads to one, lead to another.
func (c *Client) replace(ctx context.Context, version string, from, to journal.MinioService) (string, error) {
	ref := ServiceRef(c.namespace)
	raw, err := c.objects.PatchObject(ctx, ref, []kube.PatchOp{
		{Op: "test", Path: "/metadata/resourceVersion", Value: version},
		{Op: "test", Path: "/spec/selector", Value: selectors[from]},
		{Op: "replace", Path: "/spec/selector", Value: selectors[to]},
	})
	changed, err := decode[service](ref, raw, err)
	if err != nil {
		return "", fmt.Errorf("point %s to %s: %w", ref, to, err)
	}
	return changed.Metadata.ResourceVersion, nil
}

// Point implements [API].
func (c *Client) Point(ctx context.Context, to journal.MinioService) error {
	leads, version, err := c.Leads(ctx)
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
