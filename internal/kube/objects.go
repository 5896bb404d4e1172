package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Ref names an object of any API group. Namespace is empty for a cluster-scoped one.
type Ref struct {
	// Group is empty for core/v1.
	Group, Version, Resource string
	Namespace, Name          string
	// Subresource is empty for the object itself.
	Subresource string
}

// String names the object for people.
func (r Ref) String() string { return r.kind() + " " + fullName(r.Namespace, r.Name) }

// kind is the resource in the form of RBAC rules.
func (r Ref) kind() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

func (r Ref) path() []string {
	api := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		api = []string{"api", r.Version}
	}
	if r.Namespace != "" {
		api = append(api, "namespaces", r.Namespace)
	}
	api = append(api, r.Resource)
	for _, part := range []string{r.Name, r.Subresource} {
		if part != "" {
			api = append(api, part)
		}
	}
	return api
}

// PatchOp is an operation of a JSON patch (RFC 6902).
type PatchOp struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Objects reads and changes objects by name, as JSON: unknown fields stay as they are. All reads are live.
// Errors are those of [API].
type Objects interface {
	// ReadObject returns the object. It returns ErrNotFound also if there is no such resource, for example no
	// CRD.
	ReadObject(ctx context.Context, ref Ref) (json.RawMessage, error)
	// ListObjects returns the objects of the reference's resource and namespace (its name is ignored) that have
	// the label, or all with label "". It returns ErrNotFound if there is no such resource.
	ListObjects(ctx context.Context, ref Ref, label, value string) ([]json.RawMessage, error)
	// PatchObject applies a JSON patch and returns the new object. It returns ErrConflict and changes nothing
	// if a test in the patch fails. It does not send a patch without a test; see [CheckPatch].
	PatchObject(ctx context.Context, ref Ref, patch []PatchOp) (json.RawMessage, error)
	// ReplaceObject replaces the object of the UID and resource version that object has, and returns the new
	// object. It returns ErrConflict if the version differs. Without UID and version it sends nothing.
	ReplaceObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error)
	// CreateObject creates the object, whose content repeats resource, namespace and name, and returns it. It
	// returns ErrConflict and changes nothing if an object has the name.
	CreateObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error)
	// DeleteObject deletes the object with this UID, with its own grace period, and then what it owns; finalizers
	// can delay that. It returns ErrNotFound if there is no such object, ErrOtherUID if another one has the name.
	DeleteObject(ctx context.Context, ref Ref, uid string) error
	// EndObject is DeleteObject with a grace period, in whole seconds and at least one.
	EndObject(ctx context.Context, ref Ref, uid string, grace time.Duration) error
}

// FieldManager is EKCO's name in metadata.managedFields. It equals the name that API servers derived from the
// user agent of earlier versions.
const FieldManager = "ekco"

// objects are the [Objects] of a real API server.
type objects struct {
	rest        rest.Interface
	callTimeout time.Duration
}

// NewObjects returns a client for objects of the API server of config, which it does not change. It sends
// nothing.
func NewObjects(config *rest.Config, options Options) (Objects, error) {
	return newObjects(config, options.withDefaults())
}

func newObjects(config *rest.Config, options Options) (*objects, error) {
	config = options.ClientConfig(config, nil)
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for objects at %s: %w", config.Host, err)
	}
	return &objects{rest: client, callTimeout: options.CallTimeout}, nil
}

// ReadObject implements [Objects].
func (o *objects) ReadObject(ctx context.Context, ref Ref) (json.RawMessage, error) {
	return o.do(ctx, "get", ref, o.rest.Get())
}

// ListObjects implements [Objects].
func (o *objects) ListObjects(ctx context.Context, ref Ref, label, value string) ([]json.RawMessage, error) {
	ref.Name = ""
	request := o.rest.Get()
	if label != "" {
		request = request.Param("labelSelector", label+"="+value)
	}
	raw, err := o.do(ctx, "list", ref, request)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("list %s in %s: %w", ref.kind(), ref.Namespace, err)
	}
	return list.Items, nil
}

// PatchObject implements [Objects].
func (o *objects) PatchObject(ctx context.Context, ref Ref, patch []PatchOp) (json.RawMessage, error) {
	if err := CheckPatch(ref, patch); err != nil {
		return nil, err
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", ref, err)
	}
	return o.do(ctx, "patch", ref, o.rest.Patch(types.JSONPatchType).Param("fieldManager", FieldManager).Body(body))
}

// ReplaceObject implements [Objects].
func (o *objects) ReplaceObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error) {
	if err := CheckReplacement(ref, object); err != nil {
		return nil, err
	}
	return o.do(ctx, "update", ref, o.rest.Put().Param("fieldManager", FieldManager).SetHeader("Content-Type", runtime.ContentTypeJSON).Body([]byte(object)))
}

// CreateObject implements [Objects].
func (o *objects) CreateObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error) {
	return o.do(ctx, "create", ref, o.rest.Post().Param("fieldManager", FieldManager).SetHeader("Content-Type", runtime.ContentTypeJSON).Body([]byte(object)))
}

// DeleteObject implements [Objects].
func (o *objects) DeleteObject(ctx context.Context, ref Ref, uid string) error {
	return o.end(ctx, ref, uid, metav1.DeleteOptions{})
}

// EndObject implements [Objects].
func (o *objects) EndObject(ctx context.Context, ref Ref, uid string, grace time.Duration) error {
	seconds := max(1, int64(grace/time.Second))
	return o.end(ctx, ref, uid, metav1.DeleteOptions{GracePeriodSeconds: &seconds})
}

// end deletes an object. After a conflict, it reads the object to return why.
func (o *objects) end(ctx context.Context, ref Ref, uid string, options metav1.DeleteOptions) error {
	if uid == "" {
		return fmt.Errorf("delete %s: its UID is unknown; EKCO deletes nothing by name alone", ref)
	}
	expected, background := types.UID(uid), metav1.DeletePropagationBackground
	options.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}
	options.Preconditions, options.PropagationPolicy = &metav1.Preconditions{UID: &expected}, &background
	body, err := json.Marshal(options)
	if err != nil {
		return fmt.Errorf("delete %s: %w", ref, err)
	}
	_, err = o.do(ctx, "delete", ref, o.rest.Delete().SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body))
	if !errors.Is(err, ErrConflict) {
		return err
	}
	raw, readErr := o.ReadObject(ctx, ref)
	var found metav1.PartialObjectMetadata
	if readErr == nil {
		readErr = json.Unmarshal(raw, &found)
	}
	switch {
	case errors.Is(readErr, ErrNotFound):
		return readErr
	case readErr == nil && found.UID != expected:
		return fmt.Errorf("delete %s: %w: it has UID %s, not %s; nothing was deleted", ref, ErrOtherUID, found.UID, uid)
	}
	return err
}

func (o *objects) do(ctx context.Context, verb string, ref Ref, request *rest.Request) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, o.callTimeout)
	defer cancel()
	at := ref
	if verb == "create" {
		at.Name = "" // the content says it
	}
	result := request.AbsPath(at.path()...).Do(ctx)
	this, err := call{verb, ref.kind(), fullName(ref.Namespace, ref.Name)}, result.Error() // Raw knows less of it
	switch {
	case err == nil:
		answer, err := result.Raw()
		return answer, this.fail(err)
	case verb == "patch" && testFailed(err):
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return nil, this.fail(err)
}

// testFailed reports whether a JSON patch did not fit the object. For that the API server returns only Invalid
// without a field, while it names the field that a patch makes invalid.
func testFailed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
