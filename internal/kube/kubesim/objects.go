package kubesim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/sim"
)

// Objects are simulated objects of any API group. Make them with [NewObjects]. As on a real API server, each change
// makes a new resource version, and each change of the spec a new generation. The verbs that can be forbidden are "get
// RESOURCE", "patch RESOURCE", "update RESOURCE", "create RESOURCE" and "delete RESOURCE"; the name of an effect is the
// verb followed by " NAMESPACE/NAME". The only subresource is scale.
type Objects struct {
	sim.APIServer
	// OnWrite, if set, changes an object before it is stored, like a webhook.
	OnWrite func(ref kube.Ref, object map[string]any)
	// Holds, if set, returns whether a finalizer keeps an object that is deleted.
	Holds func(ref kube.Ref) bool

	mu      sync.Mutex
	objects map[kube.Ref]map[string]any
	// encoded caches the JSON of objects that were read since their last change.
	encoded map[kube.Ref]json.RawMessage
	uids    int
	version int
	calls   map[string]int
}

var _ kube.Objects = (*Objects)(nil)

// NewObjects returns an API server without objects that answers at once.
func NewObjects() *Objects {
	return &Objects{APIServer: sim.NewAPIServer(), objects: map[kube.Ref]map[string]any{}, encoded: map[kube.Ref]json.RawMessage{}, calls: map[string]int{}}
}

// Put creates or replaces an object, and returns its UID. object is its content as JSON.
func (o *Objects) Put(ref kube.Ref, object string) string {
	var content map[string]any
	if err := json.Unmarshal([]byte(object), &content); err != nil {
		panic(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keep(ref, content, otherManager)
}

// Edit changes an object like another client. A missing object stays missing.
func (o *Objects) Edit(ref kube.Ref, change func(object map[string]any)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	content := o.content(ref)
	if content == nil {
		return
	}
	change(content)
	o.keep(ref, content, otherManager)
}

// Object returns a copy of an object, or nil if it does not exist.
func (o *Objects) Object(ref kube.Ref) map[string]any {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.content(ref)
}

// Look calls look with the object, or nil if it does not exist. look must neither change nor keep the object, which,
// unlike that of Object, is no copy.
func (o *Objects) Look(ref kube.Ref, look func(object map[string]any)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	look(o.objects[ref])
}

// Remove deletes an object.
func (o *Objects) Remove(ref kube.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(ref)
}

// drop expects mu to be held.
func (o *Objects) drop(ref kube.Ref) {
	delete(o.objects, ref)
	delete(o.encoded, ref)
}

// Calls returns how often a verb was used on a resource, as in "get pods".
func (o *Objects) Calls(call string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[call]
}

// content returns a copy, nil if the object does not exist. It expects mu to be held.
func (o *Objects) content(ref kube.Ref) map[string]any {
	object, ok := o.objects[ref]
	if !ok {
		return nil
	}
	return copied(object).(map[string]any)
}

// copied returns a deep copy of decoded JSON.
func copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		clone := make(map[string]any, len(value))
		for name, field := range value {
			clone[name] = copied(field)
		}
		return clone
	case []any:
		clone := slices.Clone(value)
		for i, item := range clone {
			clone[i] = copied(item)
		}
		return clone
	}
	return value
}

// asJSON returns a copy as decoded from JSON.
func asJSON(object map[string]any) (read map[string]any) {
	raw, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil {
		panic(err)
	}
	return read
}

// keep stores a manager's change of an object. It expects mu to be held.
func (o *Objects) keep(ref kube.Ref, object map[string]any, manager string) (uid string) {
	before := o.objects[ref]
	if o.OnWrite != nil {
		o.OnWrite(ref, object)
	}
	object = asJSON(object)
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	o.version++
	meta["namespace"], meta["name"], meta["resourceVersion"] = ref.Namespace, ref.Name, strconv.Itoa(o.version)
	generation := 1.0
	if before == nil {
		o.uids++
		meta["uid"] = fmt.Sprintf("uid-%s-%d", ref.Name, o.uids)
	} else {
		was := before["metadata"].(map[string]any)
		meta["uid"], generation = was["uid"], was["generation"].(float64)
		if !reflect.DeepEqual(before["spec"], object["spec"]) {
			generation++
		}
	}
	meta["generation"] = generation
	setOwners(meta, before, object["spec"], manager)
	object["metadata"] = meta
	o.drop(ref)
	o.objects[ref] = object
	return meta["uid"].(string)
}

func (o *Objects) called(verb string, ref kube.Ref) string {
	call, _, _ := strings.Cut(verb+" "+ref.String(), " "+ref.Namespace+"/")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls[call]++
	return call
}

// scaleOf is the subresource of an object.
func scaleOf(object map[string]any) map[string]any {
	spec, _ := object["spec"].(map[string]any)
	return map[string]any{"kind": "Scale", "metadata": object["metadata"], "spec": map[string]any{"replicas": spec["replicas"]}}
}

// whole returns the object that has the subresource.
func whole(ref kube.Ref) kube.Ref {
	ref.Subresource = ""
	return ref
}

// ReadObject implements [kube.Objects].
func (o *Objects) ReadObject(ctx context.Context, ref kube.Ref) (json.RawMessage, error) {
	if err := sim.Reach(ctx, &o.APIServer, o.called("get", ref)); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.answer(ref)
}

// answer expects mu to be held.
func (o *Objects) answer(ref kube.Ref) (json.RawMessage, error) {
	object, ok := o.objects[whole(ref)]
	if !ok {
		return nil, fmt.Errorf("%s: %w", ref, kube.ErrNotFound)
	}
	if ref.Subresource != "" {
		return json.Marshal(scaleOf(object))
	}
	if o.encoded[ref] == nil {
		encoded, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		o.encoded[ref] = encoded
	}
	return bytes.Clone(o.encoded[ref]), nil
}

// ListObjects implements [kube.Objects]. It sorts the objects by name.
func (o *Objects) ListObjects(ctx context.Context, ref kube.Ref, label, value string) (list []json.RawMessage, err error) {
	ref.Name = ""
	if err := sim.Reach(ctx, &o.APIServer, o.called("list", ref)); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var named []kube.Ref
	for of, object := range o.objects {
		meta, _ := object["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		name := of.Name
		if of.Name = ""; of == ref && (label == "" || labels[label] == value) {
			of.Name = name
			named = append(named, of)
		}
	}
	slices.SortFunc(named, func(a, b kube.Ref) int { return strings.Compare(a.Name, b.Name) })
	for _, of := range named {
		raw, err := o.answer(of)
		if err != nil {
			return nil, err
		}
		list = append(list, raw)
	}
	return list, nil
}

// PatchObject implements [kube.Objects].
func (o *Objects) PatchObject(ctx context.Context, ref kube.Ref, patch []kube.PatchOp) (json.RawMessage, error) {
	if err := kube.CheckPatch(ref, patch); err != nil {
		return nil, err
	}
	return o.change(ctx, "patch", ref, func(object map[string]any) error {
		if err := apply(object, patch); err != nil {
			return fmt.Errorf("patch %s: %w", ref, err)
		}
		return nil
	})
}

// ReplaceObject implements [kube.Objects].
func (o *Objects) ReplaceObject(ctx context.Context, ref kube.Ref, replacement json.RawMessage) (json.RawMessage, error) {
	if err := kube.CheckReplacement(ref, replacement); err != nil {
		return nil, err
	}
	return o.change(ctx, "update", ref, func(object map[string]any) error {
		var content map[string]any
		if err := json.Unmarshal(replacement, &content); err != nil {
			return err
		}
		is, wanted := object["metadata"].(map[string]any), content["metadata"].(map[string]any)
		if is["resourceVersion"] != wanted["resourceVersion"] || is["uid"] != wanted["uid"] {
			return fmt.Errorf("update %s: %w", ref, kube.ErrConflict)
		}
		if ref.Subresource != "" {
			object["spec"].(map[string]any)["replicas"] = content["spec"].(map[string]any)["replicas"]
			return nil
		}
		content["status"] = object["status"]
		clear(object)
		maps.Copy(object, content)
		return nil
	})
}

func (o *Objects) change(ctx context.Context, verb string, ref kube.Ref, change func(object map[string]any) error) (answer json.RawMessage, err error) {
	effect := verb + " " + ref.String()
	err = sim.Change(ctx, &o.APIServer, o.called(verb, ref), effect, func() (bool, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		object := o.content(whole(ref))
		if object == nil {
			return false, fmt.Errorf("%s: %w", ref, kube.ErrNotFound)
		}
		if err := change(object); err != nil {
			return false, err
		}
		o.keep(whole(ref), object, kube.FieldManager)
		answer, err = o.answer(ref)
		return true, err
	})
	return answer, err
}

// CreateObject implements [kube.Objects].
func (o *Objects) CreateObject(ctx context.Context, ref kube.Ref, object json.RawMessage) (answer json.RawMessage, err error) {
	err = sim.Change(ctx, &o.APIServer, o.called("create", ref), "create "+ref.String(), func() (bool, error) {
		var content map[string]any
		if err := json.Unmarshal(object, &content); err != nil {
			return false, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.objects[ref] != nil {
			return false, fmt.Errorf("create %s: %w", ref, kube.ErrConflict)
		}
		o.keep(ref, content, kube.FieldManager)
		answer, err = o.answer(ref)
		return true, err
	})
	return answer, err
}

// EndObject implements [kube.Objects]. It ignores the grace period.
func (o *Objects) EndObject(ctx context.Context, ref kube.Ref, uid string, _ time.Duration) error {
	return o.DeleteObject(ctx, ref, uid)
}

// DeleteObject implements [kube.Objects].
func (o *Objects) DeleteObject(ctx context.Context, ref kube.Ref, uid string) error {
	held := o.Holds != nil && o.Holds(ref)
	return sim.Change(ctx, &o.APIServer, o.called("delete", ref), "delete "+ref.String(), func() (bool, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		object := o.content(ref)
		if object == nil {
			return false, fmt.Errorf("%s: %w", ref, kube.ErrNotFound)
		}
		meta := object["metadata"].(map[string]any)
		switch ends := meta["deletionTimestamp"] != nil; {
		case meta["uid"] != uid:
			return false, fmt.Errorf("%s: %w", ref, kube.ErrOtherUID)
		case held && ends:
			return false, nil
		case held:
			meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
			o.keep(ref, object, kube.FieldManager)
		default:
			o.drop(ref)
		}
		return true, nil
	})
}

// apply applies a JSON patch. As on a real API server, a patch that does not fit the object is a failed test.
func apply(object map[string]any, ops []kube.PatchOp) error {
	encoded, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	if err != nil {
		return err
	}
	before, err := json.Marshal(object)
	if err != nil {
		return err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return fmt.Errorf("%w: %w", kube.ErrConflict, err)
	}
	clear(object)
	return json.Unmarshal(after, &object)
}
