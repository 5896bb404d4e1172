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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Ref names an object of any API group; one that is in no namespace has none.
type Ref struct {
	// Group is empty for that of core/v1.
	Group, Version, Resource string
	Namespace, Name          string
	// Subresource is empty for the object itself.
	Subresource string
}

// String names the object for people.
func (r Ref) String() string { return r.kind() + " " + fullName(r.Namespace, r.Name) }

// kind is the resource as permissions name it.
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

// Objects reads and changes objects by name, as JSON: fields that EKCO does not
// know stay as they are. All reads are live. Errors are those of [API].
type Objects interface {
	// ReadObject returns the object. It returns ErrNotFound also when there is no such
	// resource, as where a CRD is missing.
	ReadObject(ctx context.Context, ref Ref) (json.RawMessage, error)
	// ListObjects returns the objects of the reference's resource and namespace, its name
	// aside, that have the label; with label "" all. It returns ErrNotFound when there is
	// no such resource.
	ListObjects(ctx context.Context, ref Ref, label, value string) ([]json.RawMessage, error)
	// PatchObject changes the object by a JSON patch and returns what it is then. It
	// returns ErrConflict, and nothing is changed, when a test of the patch fails. A
	// patch that tests nothing is not sent; see [CheckPatch].
	PatchObject(ctx context.Context, ref Ref, patch []PatchOp) (json.RawMessage, error)
	// ReplaceObject puts another in the place of the object of that resource version,
	// which is part of it, and returns what it is then. It returns ErrConflict when the
	// object is not of that version. Without UID and version nothing is sent.
	ReplaceObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error)
	// CreateObject creates the object of that resource, namespace and name, which its
	// content repeats, and returns what it is then. It returns ErrConflict, and nothing
	// is changed, when there is one of the name.
	CreateObject(ctx context.Context, ref Ref, object json.RawMessage) (json.RawMessage, error)
	// DeleteObject asks for the end of the object of that UID, which has the time to end
	// that it has by itself, and stays as long as something holds it. It returns
	// ErrNotFound when there is none of the name, ErrOtherUID when it is another one.
	DeleteObject(ctx context.Context, ref Ref, uid string) error
	// EndObject is DeleteObject with a time to end, in whole seconds and at least one.
	EndObject(ctx context.Context, ref Ref, uid string, grace time.Duration) error
}

// FieldManager is by whom a field was changed last, in an object's metadata.managedFields, if that
// was EKCO. It is what API servers made of the user agent of every EKCO before, too.
const FieldManager = "ekco"

// objects are the [Objects] of a real API server.
type objects struct {
	rest        rest.Interface
	callTimeout time.Duration
}

// NewObjects returns a client for the objects of the API server of config, which is
// not changed. It sends nothing.
func NewObjects(config *rest.Config, options Options) (Objects, error) {
	options = options.withDefaults()
	// It knows no types but those of errors.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS, config.Burst = options.QPS, options.Burst
	config.Timeout = 0 // each call has its own
	if options.UserAgent != "" {
		config.UserAgent = options.UserAgent
	}
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

// end deletes an object. A conflict says that the precondition did not hold; the object is
// then read to say why.
func (o *objects) end(ctx context.Context, ref Ref, uid string, options metav1.DeleteOptions) error {
	if uid == "" {
		return fmt.Errorf("delete %s: its UID is not known; nothing is deleted by name alone", ref)
	}
	expected := types.UID(uid)
	options.TypeMeta, options.Preconditions = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}, &metav1.Preconditions{UID: &expected}
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
		return fmt.Errorf("delete %s: %w: it has UID %s, not %s; it was left alone", ref, ErrOtherUID, found.UID, uid)
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

// testFailed reports whether a JSON patch did not fit the object. The API server says of
// that only that it is invalid, and names no field, as it does of what a patch makes.
func testFailed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		return false
	}
	details := status.Status().Details
	return details == nil || len(details.Causes) == 0
}
