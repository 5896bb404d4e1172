package kube

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errUntested prevents a change that would overwrite another client's change since the read.
var errUntested = errors.New("the change does not test the version that was read")

// CheckPatch returns an error unless the patch begins with tests, and one tests the resource version or another value
// that was read. A test of the UID alone is not enough: the object may have changed.
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

// CheckReplacement returns an error unless the object has UID and resource version. Without them the API server would
// replace an object that another client has changed.
func CheckReplacement(ref Ref, object json.RawMessage) error {
	var read metav1.PartialObjectMetadata
	if err := json.Unmarshal(object, &read); err != nil {
		return fmt.Errorf("update %s: %w", ref, err)
	}
	if read.UID == "" || read.ResourceVersion == "" {
		return fmt.Errorf("update %s: %w", ref, errUntested)
	}
	return nil
}
