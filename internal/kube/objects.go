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

// Ref names an object of any API group. Namespace is empty for a cluster-scoped object.
type Ref struct {
	// Group is empty for core/v1.
	Group, Version, Resource string
	Namespace, Name          string
	// Subresource is empty for the object itself.
	Subresource string
}

// String returns the name of the object for messages.
func (r Ref) String() string { return r.kind() + " " + fullName(r.Namespace, r.Name) }

// kind returns the resource as RBAC rules write it.
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

// Objects reads and changes objects by name. It uses JSON, so that unknown fields do not get lost. All reads are live.
// The errors are the errors of [API].
type Objects interface {
	// ReadObject returns the object. It also returns ErrNotFound if the resource does not exist, for example
	// because the CRD is missing.
	ReadObject(ctx context.Context, ref Ref) (json.RawMessage, error)
	// ListObjects returns the objects with the label, or all objects if label is "". It uses the resource and the
	// namespace of ref, but not the name. It returns ErrNotFound if the resource does not exist.
	ListObjects(ctx context.Context, ref Ref, label, value string) ([]json.RawMessage, error)
	// PatchObject applies a JSON patch and returns the new object. It returns ErrConflict and changes nothing
	// if a test in the patch fails. It does not send a patch without a test; see [CheckPatch].
	PatchObject(ctx context.Context, ref Ref, patch []PatchOp) (json.RawMessage, error)
	// ReplaceObject replaces the object and returns the new object. It returns ErrConflict if the stored object has
	// another resource version than object. It does not send an object without UID and version; see
	// [CheckReplacement].
	ReplaceObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error)
	// CreateObject creates the object and returns it. The content must also have the resource, the namespace and the
	// name. CreateObject returns ErrConflict and changes nothing if an object with the name exists.
	CreateObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error)
	// DeleteObject deletes the object with this UID, with the object's own grace period. Finalizers can delay the
	// deletion. It returns ErrNotFound if no object has the name, and ErrOtherUID if another object has the name.
	DeleteObject(ctx context.Context, ref Ref, uid string) error
	// EndObject is DeleteObject with the given grace period: whole seconds, at least 1 s.
	EndObject(ctx context.Context, ref Ref, uid string, grace time.Duration) error
}

// FieldManager is EKCO's name in metadata.managedFields. Earlier versions of EKCO did not set it: there the API server
// derived the same name from the user agent.
const FieldManager = "ekco"

// objects implements [Objects] with a real API server.
type objects struct {
	rest        rest.Interface
	callTimeout time.Duration
}

// NewObjects returns a client for objects of the API server of config. It does not change config and sends no
// request.
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

// end deletes an object. After a conflict, it reads the object to learn the reason.
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
		at.Name = "" // the content has the name
	}
	result := request.AbsPath(at.path()...).Do(ctx)
	this, err := call{verb, ref.kind(), fullName(ref.Namespace, ref.Name)}, result.Error() // has more detail than the error of Raw
	switch {
	case err == nil:
		answer, err := result.Raw()
		return answer, this.fail(err)
	case verb == "patch" && testFailed(err):
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return nil, this.fail(err)
}

// testFailed reports whether a test of a JSON patch failed. Then the API server returns Invalid without a field. If a
// patch makes a field invalid, the error names that field.
func testFailed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
