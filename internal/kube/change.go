package kube

import (
	"context"
	"encoding/json"
	"fmt"
)

// Change is a change of one object. T is the Go type of the object, and F the type of its facts. All fields except
// Moved must be set.
type Change[T, F any] struct {
	Ref Ref
	// UID is the UID that Facts must return for the object.
	UID   string
	Facts func(read *T) (facts F, uid string, err error)
	// Lacks returns a text about the facts that are not as requested yet, or "".
	Lacks func(F) string
	// Moved returns a text if the change must not be made because another client has changed the object, or "".
	Moved func(F) string
	// Write makes the change. It must fail if the object has another version than raw.
	Write func(raw json.RawMessage, read *T) (json.RawMessage, error)
}

// Make makes the change if Lacks returns a text. It returns the new facts. If another client changes the object at the
// same time, Make reads the object again and retries.
func (c Change[T, F]) Make(ctx context.Context, objects Objects) (facts F, err error) {
	err = Retry(ErrConflict, func() (err error) {
		facts, err = c.try(ctx, objects)
		return err
	})
	return facts, err
}

func (c Change[T, F]) try(ctx context.Context, objects Objects) (F, error) {
	raw, err := objects.ReadObject(ctx, c.Ref)
	read, facts, uid, err := c.decode(raw, err)
	switch {
	case err != nil:
		return facts, err
	case uid != c.UID:
		return facts, fmt.Errorf("change %s: %w: it has UID %s, not %s; nothing was changed", c.Ref, ErrOtherUID, uid, c.UID)
	case c.Lacks(facts) == "":
		return facts, nil
	case c.Moved != nil && c.Moved(facts) != "":
		return facts, fmt.Errorf("change %s: %w: another client changed it: %s; nothing was changed", c.Ref, ErrConflict, c.Moved(facts))
	}
	raw, err = c.Write(raw, read)
	_, facts, _, err = c.decode(raw, err)
	if err != nil {
		return facts, err
	}
	if lacks := c.Lacks(facts); lacks != "" { // a webhook may have changed it
		return facts, fmt.Errorf("change %s: the API server stored something else: %s; look for a webhook that changes it", c.Ref, lacks)
	}
	return facts, nil
}

func (c Change[T, F]) decode(raw json.RawMessage, err error) (read *T, facts F, uid string, _ error) {
	object, err := Decode[T](c.Ref, raw, err)
	if err == nil {
		facts, uid, err = c.Facts(&object)
	}
	return &object, facts, uid, err
}
