package kube

import (
	"errors"
	"fmt"
	"testing"
)

func TestALackingPermissionIsNamedAndHasAKey(t *testing.T) {
	err := Lacking(fmt.Errorf("get: %w", ErrForbidden), "get", "nodes")
	if !errors.Is(err, ErrForbidden) || err.Error() != "EKCO's service account lacks the permission to get nodes: get: forbidden" {
		t.Errorf("it says %v", err)
	}
	if keyed, ok := errors.AsType[*lackingError](err); !ok || keyed.Key() != "forbidden: get nodes" {
		t.Errorf("%T has another key", err)
	}
	if other := Lacking(ErrUnavailable, "get", "nodes"); other.Error() != ErrUnavailable.Error() {
		t.Errorf("another error became %v", other)
	}
}

func TestADeletionOfWhatIsGoneSucceeds(t *testing.T) {
	for _, gone := range []error{nil, ErrNotFound, ErrOtherUID} {
		if err := Deleted(gone); err != nil {
			t.Errorf("%v: %v", gone, err)
		}
	}
	if err := Deleted(ErrForbidden); !errors.Is(err, ErrForbidden) {
		t.Errorf("a failure became %v", err)
	}
}
