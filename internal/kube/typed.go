package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Get reads an object live. T is a type of k8s.io/api, or a struct with the fields that EKCO needs.
func Get[T any](ctx context.Context, objects Objects, ref Ref) (T, error) {
	raw, err := objects.ReadObject(ctx, ref)
	return Decode[T](ref, raw, err)
}

// Find is [Get] for an object that may not exist.
func Find[T any](ctx context.Context, objects Objects, ref Ref) (read T, found bool, err error) {
	read, err = Get[T](ctx, objects, ref)
	if errors.Is(Sentinel(err), ErrNotFound) {
		return read, false, nil
	}
	return read, err == nil, err
}

// List is [Get] for the objects that [Objects.ListObjects] returns.
func List[T any](ctx context.Context, objects Objects, ref Ref, label, value string) ([]T, error) {
	list, err := objects.ListObjects(ctx, ref, label, value)
	read := make([]T, len(list))
	for i := 0; i < len(list) && err == nil; i++ {
		read[i], err = Decode[T](ref, list[i], nil)
	}
	return read, err
}

// Decode returns the result of a call of [Objects] as a T.
func Decode[T any](ref Ref, raw json.RawMessage, err error) (read T, _ error) {
	if err != nil {
		return read, err // the error already names the call and the object
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return *new(T), fmt.Errorf("read %s: %w", ref, err)
	}
	return read, nil
}

// Edit calls edit with a decoded object and returns the edited object. It keeps unknown fields and the notation of
// numbers.
func Edit(ref Ref, raw json.RawMessage, edit func(object map[string]any) error) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var object map[string]any
	err := decoder.Decode(&object)
	if err == nil {
		err = edit(object)
	}
	var edited bytes.Buffer
	if err == nil {
		encoder := json.NewEncoder(&edited)
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(object)
	}
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", ref, err)
	}
	return edited.Bytes(), nil
}
