package s3

import (
	"context"
	"io"
	"iter"
	"time"
)

// NullVersion is the id of the version of an object without versioning.
const NullVersion = "null"

// Version is a version of an object, or a delete marker.
type Version struct {
	Key string
	// ID is never empty: [NullVersion] is the id of an object without versions.
	ID           string
	DeleteMarker bool
	Size         int64
	// ETag has no quotes. It is empty for a delete marker.
	ETag string
	// Modified is the time of modification, exact to the millisecond.
	Modified time.Time
	// Attributes is nil for a delete marker, or if a listing could not report them. Then [Source.Describe]
	// returns them.
	Attributes *Attributes
}

// Attributes are the properties of an object besides its content.
type Attributes struct {
	// Headers are the stored standard headers and the user's metadata, by canonical names.
	Headers map[string]string
	// Expires is a header that listings do not report. It changes only together with the time of modification.
	Expires string
	Tags    map[string]string
	// Retention is nil if there is none.
	Retention *Retention
	LegalHold bool
	// Encryption is how the server encrypts the object; empty if it does not.
	Encryption Encryption
}

// Retention forbids removing a version before a time.
type Retention struct {
	// Mode is GOVERNANCE or COMPLIANCE.
	Mode string
	// Until is exact to the second.
	Until time.Time
}

// Encryption is how a server encrypts an object.
type Encryption string

// The encryptions of MinIO.
const (
	Unencrypted Encryption = ""
	// SSES3 and SSEKMS use keys of the server, and clients read plain content.
	SSES3  Encryption = "AES256"
	SSEKMS Encryption = "aws:kms"
	// SSEC uses a key that the client sends with each request and the server does not store.
	SSEC Encryption = "SSE-C"
)

// Part is an uploaded part of an object.
type Part struct {
	Number int
	ETag   string
}

// Content is the content of a version. Close it after use.
type Content struct {
	io.ReadCloser
	// Expires and Headers have the values of the version's [Attributes].
	Expires string
	Headers map[string]string
}

// Source is the store to copy from. Implementations are safe for concurrent use, and every call
// ends when its context is done.
type Source interface {
	// Buckets lists the buckets by name.
	Buckets(ctx context.Context) ([]string, error)
	// Versions lists every version and delete marker of a bucket with a key after the given key. It
	// sorts by key in byte order, and lists the newest version of each object first. If an object
	// changes during the listing, Versions may list its old or its new state. An error ends the listing.
	Versions(ctx context.Context, bucket, after string) iter.Seq2[Version, error]
	// VersionsOf lists the versions of one object. The list is empty if the object does not exist.
	VersionsOf(ctx context.Context, bucket, key string) ([]Version, error)
	// Describe returns the attributes of a version.
	Describe(ctx context.Context, bucket string, v Version) (Attributes, error)
	// Open opens length bytes of the content of a version from an offset. It returns ErrGone if no
	// version with this ETag exists.
	Open(ctx context.Context, bucket string, v Version, offset, length int64) (Content, error)
	// Settings returns the settings of a bucket that are not at their defaults.
	Settings(ctx context.Context, bucket string) (Settings, error)
}

// Target is the store to copy to. It is also a [Source], because its content is compared.
type Target interface {
	Source
	// CreateBucket creates a bucket, with object lock if locked is set. It succeeds if the bucket
	// exists.
	CreateBucket(ctx context.Context, bucket string, locked bool) error
	// RemoveBucket removes an empty bucket. It succeeds if the bucket does not exist.
	RemoveBucket(ctx context.Context, bucket string) error
	// Set changes one setting of a bucket; an empty value removes it. It returns ErrNotOffered if
	// the server does not support the setting.
	Set(ctx context.Context, bucket string, name SettingName, value string) error
	// Put stores a version with its id, time of modification, ETag and attributes. The server compares the content with
	// the ETag. Set unchecked if the ETag is not a checksum of the content. old is the version with this id that the
	// caller has seen, or nil. A version without an id of its own replaces only old: if another version is stored, Put
	// returns ErrExists. Put may also return ErrExists if a version with this id and ETag exists.
	Put(ctx context.Context, bucket string, v Version, old *Version, content io.Reader, unchecked bool) error
	// Begin starts a multipart upload of a version and returns its id. After a crash of EKCO the upload
	// remains until the server removes it.
	Begin(ctx context.Context, bucket string, v Version) (upload string, err error)
	// PutPart stores a part. Every part except the last must have at least 5 MiB.
	PutPart(ctx context.Context, bucket string, v Version, upload string, number int, content io.Reader, size int64) (Part, error)
	// Complete makes a version of all parts. It replaces any version with the same id, because servers can check a
	// condition only for a key's newest version.
	Complete(ctx context.Context, bucket string, v Version, upload string, parts []Part) error
	// Abort removes an upload that was not completed.
	Abort(ctx context.Context, bucket string, v Version, upload string) error
	// PutMarker stores a delete marker with its id and time.
	PutMarker(ctx context.Context, bucket string, v Version) error
	// Annotate changes tags, retention and legal hold of a stored version from old to the values of v.
	Annotate(ctx context.Context, bucket string, v Version, old Attributes) error
	// Remove deletes a version. It succeeds if the version does not exist. Like PutMarker and Annotate, it
	// sends its request only once: a repeated request could hit a version that a client wrote in between.
	Remove(ctx context.Context, bucket string, v Version) error
}
