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

// causes are what an error of a client can be about, with the keys of that. What
// tells a person more comes first.
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

// keyOf names what an error is about, as far as that is known. A hold for another
// cause says so at once, and one for the same cause only now and then.
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

// keyed gives an error the key that [keyOf] finds, after that of the part of the
// purge which met it. It says what it said.
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

// Unwrap returns the error as it was met.
func (e *keyedError) Unwrap() error { return e.cause }

// Key names what the error is about.
func (e *keyedError) Key() string { return e.key }
