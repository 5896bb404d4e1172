package kube

import (
	"encoding/json"
	"errors"
	"fmt"
)

// errUntested keeps a change from being sent that would overwrite what somebody else has changed since EKCO read the object.
var errUntested = errors.New("it does not test what was read")

// CheckPatch returns an error unless the patch tests the resource version or a value that was read before it changes
// anything. That the object is the one that was read, by its UID, says nothing of what it has become since.
func CheckPatch(ref Ref, patch []PatchOp) error {
	for _, op := range patch {
		if op.Op != "test" {
			break
		}
		if op.Path != "/metadata/uid" && op.Value != "" {
			return nil
		}
	}
	return fmt.Errorf("patch %s: %w", ref, errUntested)
}

// CheckReplacement returns an error unless the object says of which UID and resource version the one is that it replaces:
// without that the API server replaces any.
func CheckReplacement(ref Ref, object json.RawMessage) error {
	var read struct {
		Metadata struct {
			UID             string `json:"uid"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object, &read); err != nil {
		return fmt.Errorf("update %s: %w", ref, err)
	}
	if read.Metadata.UID == "" || read.Metadata.ResourceVersion == "" {
		return fmt.Errorf("update %s: %w", ref, errUntested)
	}
	return nil
}
