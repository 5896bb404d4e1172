package s3

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// Sentinel errors. Every error of this package wraps at most one of them.
var (
	// ErrGone: there is no such bucket, object or version, or its content has changed.
	ErrGone = errors.New("the object is gone or was changed")
	// ErrExists: this version already exists with this content.
	ErrExists = errors.New("this version exists already")
	// ErrLocked: a retention or a legal hold forbids the change.
	ErrLocked = errors.New("the object is locked")
	// ErrDigest: the content that arrived does not match its checksum.
	ErrDigest = errors.New("the content does not have the announced checksum")
	// ErrUnreadable: only a key of the client can decrypt the content (SSE-C).
	ErrUnreadable = errors.New("the object is encrypted with a key that only its owner has")
	// ErrNotOffered: the server does not support the operation.
	ErrNotOffered = errors.New("the server does not support this operation")
	// ErrDenied: the server does not accept the credentials, or they do not permit the operation.
	ErrDenied = errors.New("the server refuses the credentials")
	// ErrFull: the server has no free space for the object.
	ErrFull = errors.New("the server has no free space")
	// ErrTaken: a client has a bucket of that name.
	ErrTaken = errors.New("a client has a bucket of that name")
	// ErrHealing: the server already runs a healing scan, for another client or for an EKCO that
	// was killed.
	ErrHealing = errors.New("the server already runs a scan for another client")
	// ErrForgotten: the server does not know the healing scan. It forgets all scans when it
	// restarts, and a scan 10 minutes after its end.
	ErrForgotten = errors.New("the server no longer knows this scan")
)

// errorKinds maps S3 error codes to errors of this package.
var errorKinds = map[string]error{
	minio.NoSuchBucket:  ErrGone,
	minio.NoSuchKey:     ErrGone,
	minio.NoSuchVersion: ErrGone,
	"NoSuchObject":      ErrGone,
	// The newest version of the object is a delete marker.
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

// addContext adds the operation and its object or bucket to an error.
func addContext(what, bucket, key string, err error) error {
	on := bucket
	if key != "" {
		on += "/" + key
	}
	return fmt.Errorf("%s %q: %w", what, on, explain(err))
}

// explain wraps a server's error in the matching error of this package.
func explain(err error) error {
	var response minio.ErrorResponse
	if err == nil || !errors.As(err, &response) {
		return err
	}
	kind := errorKinds[response.Code]
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

// Refusal is the error of a server that understood a request and refuses it.
type Refusal interface {
	error
	// Reason is the server's reason.
	Reason() string
}

// refused is the error of a request that the server would refuse again: an HTTP status 4xx that is not about
// permissions.
type refused struct{ minio.ErrorResponse }

// Reason implements [Refusal].
func (r refused) Reason() string { return r.Message }

// Unwrap returns the server's answer.
func (r refused) Unwrap() error { return r.ErrorResponse }
