package s3

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// Sentinel errors. Every error of this package wraps at most one of them.
var (
	// ErrGone: there is no such bucket, object or version, or its content is not
	// the one that was meant any more.
	ErrGone = errors.New("the object is gone or was changed")
	// ErrExists: this version with this content is there already.
	ErrExists = errors.New("this version exists already")
	// ErrLocked: retention or a legal hold forbid the change.
	ErrLocked = errors.New("the object is locked")
	// ErrDigest: what arrived is not what was announced.
	ErrDigest = errors.New("the content does not have the announced checksum")
	// ErrUnreadable: the content can only be read with a key that the client
	// keeps to itself (SSE-C).
	ErrUnreadable = errors.New("the object is encrypted with a key that only its owner has")
	// ErrNotOffered: the server does not offer what was asked for.
	ErrNotOffered = errors.New("the server does not offer this")
	// ErrDenied: the server does not accept the credentials, or not for this.
	ErrDenied = errors.New("the server refuses the credentials")
	// ErrFull: the server has no room for the object.
	ErrFull = errors.New("the server has no free space")
	// ErrTaken: a client has a bucket of that name.
	ErrTaken = errors.New("a client has a bucket of that name")
	// ErrHealing: the server makes a pass of healing already, which somebody else began, or an
	// EKCO that was killed.
	ErrHealing = errors.New("the server already runs one for another client")
	// ErrForgotten: the server knows nothing of a pass of healing. It forgets all with a
	// restart, and a pass 10 minutes after its end.
	ErrForgotten = errors.New("the server no longer knows this one")
)

// kinds are what the codes of S3 errors mean here.
var kinds = map[string]error{
	minio.NoSuchBucket:  ErrGone,
	minio.NoSuchKey:     ErrGone,
	minio.NoSuchVersion: ErrGone,
	"NoSuchObject":      ErrGone,
	// An object whose newest version is a delete marker.
	"MethodNotAllowed": ErrGone,
	"InvalidRange":     ErrGone,

	"BadDigest":                 ErrDigest,
	"XAmzContentSHA256Mismatch": ErrDigest,

	"ObjectLocked": ErrLocked,

	"NotImplemented":                 ErrNotOffered,
	"XMinioAdminNotImplemented":      ErrNotOffered,
	"InvalidAccessKeyId":             ErrDenied,
	"SignatureDoesNotMatch":          ErrDenied,
	"AccessDenied":                   ErrDenied,
	"XMinioStorageFull":              ErrFull,
	"XMinioAdminBucketQuotaExceeded": ErrFull,
	"XMinioHealAlreadyRunning":       ErrHealing,
	"XMinioHealOverlappingPaths":     ErrHealing,
	"XMinioHealInvalidClientToken":   ErrForgotten,
	"XMinioHealNoSuchProcess":        ErrForgotten,
}

// failed says what was tried on which object or bucket.
func failed(what, bucket, key string, err error) error {
	on := bucket
	if key != "" {
		on += "/" + key
	}
	return fmt.Errorf("%s %q: %w", what, on, explain(err))
}

// explain adds the sentinel that an answer stands for.
func explain(err error) error {
	var response minio.ErrorResponse
	if err == nil || !errors.As(err, &response) {
		return err
	}
	kind := kinds[response.Code]
	if kind == nil && response.StatusCode == http.StatusNotFound {
		kind = ErrGone
	}
	if kind == nil && response.StatusCode/100 == 4 && response.StatusCode != http.StatusRequestTimeout && response.StatusCode != http.StatusTooManyRequests {
		return refused{response}
	}
	if kind == nil {
		return err
	}
	return fmt.Errorf("%w (%s: %s)", kind, response.Code, response.Message)
}

// Refusal is an answer of a server that understood what was asked and does not do
// it.
type Refusal interface {
	error
	// Reason is why, in the server's words.
	Reason() string
}

// refused is a request that would be refused again: its code is of the 400s, and
// none that says who may do what.
type refused struct{ minio.ErrorResponse }

// Reason implements [Refusal].
func (r refused) Reason() string { return r.Message }

// Unwrap returns the answer.
func (r refused) Unwrap() error { return r.ErrorResponse }
