package purge

import (
	"cmp"
	"errors"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/ceph"
	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/rook"
)

// causes are the possible causes of a client's error, with their keys; the most useful ones first.
var causes = []struct {
	key string
	err error
}{
	{"no tools pod", rook.ErrNoToolsPod},
	{"certificates", etcd.ErrCertificates},
	{"ambiguous member", etcd.ErrAmbiguous},
	{"other address", etcd.ErrOtherAddress},
	{"no quorum", etcd.ErrNoQuorum},
	{"etcd away", etcd.ErrUnavailable},
	{"ceph away", ceph.ErrUnavailable},
	{"forbidden", kube.ErrForbidden},
	{"api away", kube.ErrUnavailable},
}

// keyOf returns the cause of an error, if known. A hold for a new cause is recorded at once, one for the same
// cause only now and then.
func keyOf(err error) string {
	if key := actions.KeyOf(err); key != "" {
		return key
	}
	for _, cause := range causes {
		if errors.Is(err, cause.err) {
			return cause.key
		}
	}
	return ""
}

// keyed adds a key to an error: the part of the purge, and the key from [keyOf]. The text stays the same.
func keyed(part string, err error) error {
	if err == nil {
		return nil
	}
	return &keyedError{part + ": " + cmp.Or(keyOf(err), "other"), err}
}

type keyedError struct {
	key   string
	cause error
}

// Error implements error.
func (e *keyedError) Error() string { return e.cause.Error() }

// Unwrap returns the original error.
func (e *keyedError) Unwrap() error { return e.cause }

// Key returns the cause.
func (e *keyedError) Key() string { return e.key }
