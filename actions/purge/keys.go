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

// errorKeys maps errors of clients to keys of holds. The most useful causes come first.
var errorKeys = []struct {
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

// keyOf returns the key for the cause of an error, or "" if it is unknown. EKCO records a hold with a new key at once,
// but a hold with the same key only at intervals.
func keyOf(err error) string {
	if key := actions.KeyOf(err); key != "" {
		return key
	}
	for _, cause := range errorKeys {
		if errors.Is(err, cause.err) {
			return cause.key
		}
	}
	return ""
}

// withKey wraps an error with a key: the name of the part, and the key from [keyOf]. The text stays the same.
func withKey(part string, err error) error {
	if err == nil {
		return nil
	}
	return &keyedError{part + ": " + cmp.Or(keyOf(err), "other"), err}
}

type keyedError struct {
	key   string
	cause error
}

func (e *keyedError) Error() string { return e.cause.Error() }

func (e *keyedError) Unwrap() error { return e.cause }

func (e *keyedError) Key() string { return e.key }
