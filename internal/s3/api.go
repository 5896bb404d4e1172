package s3

import (
	"context"
	"io"
	"iter"
	"time"
)

// NullVersion is the id of the version that an object has without versioning.
const NullVersion = "null"

// Version is a version of an object, or a delete marker.
type Version struct {
	Key string
	// ID is never empty: [NullVersion] is that of an object without versions.
	ID           string
	DeleteMarker bool
	Size         int64
	// ETag is without quotes, and empty for a delete marker.
	ETag string
	// Modified is exact to the millisecond, as servers tell it.
	Modified time.Time
	// Attributes are nil when a listing could not tell them, and for a delete
	// marker: see [Source.Describe].
	Attributes *Attributes
}

// Attributes are what an object has besides its content.
type Attributes struct {
	// Headers are the standard headers that the object was stored with, and the
	// user's metadata, by canonical names and with the values that are stored.
	Headers map[string]string
	// Expires is a header too, but no listing tells it: there it is empty. It does
	// not change without the time of modification.
	Expires string
	Tags    map[string]string
	// Retention is nil when there is none.
	Retention *Retention
	LegalHold bool
	// Encryption is how the server encrypts the object; empty when it does not.
	Encryption Encryption
}

// Retention forbids that a version is removed before a time.
type Retention struct {
	// Mode is GOVERNANCE or COMPLIANCE.
	Mode string
	// Until is exact to the second.
	Until time.Time
}

// Encryption is how a server encrypts an object.
type Encryption string

// What MinIO knows.
const (
	Unencrypted Encryption = ""
	// SSES3 and SSEKMS use keys of the server, and show plain content.
	SSES3  Encryption = "AES256"
	SSEKMS Encryption = "aws:kms"
	// SSEC uses a key that the client sends with each request and nobody keeps.
	SSEC Encryption = "SSE-C"
)

// Part is a part of an object that is uploaded.
type Part struct {
	Number int
	ETag   string
}

// Content is the content of a version, to be closed by who opened it.
type Content struct {
	io.ReadCloser
	// Expires is that of the version's [Attributes], and Headers are theirs.
	Expires string
	Headers map[string]string
}

// Source is the store that is copied from. Implementations are safe for
// concurrent use, and every call honours its context.
type Source interface {
	// Buckets lists the buckets by name.
	Buckets(ctx context.Context) ([]string, error)
	// Versions lists every version and delete marker of the objects of a bucket
	// with keys after a key, by key in the order of bytes, the newest version of
	// each object first. What changes meanwhile may be listed as it was or as it is.
	// An error ends the list.
	Versions(ctx context.Context, bucket, after string) iter.Seq2[Version, error]
	// VersionsOf is the part of Versions that is about one object, empty without it.
	VersionsOf(ctx context.Context, bucket, key string) ([]Version, error)
	// Describe tells the attributes of a version whose listing did not.
	Describe(ctx context.Context, bucket string, v Version) (Attributes, error)
	// Open opens the content of a version from an offset, length bytes of it. It
	// returns ErrGone when the version is not there with that ETag.
	Open(ctx context.Context, bucket string, v Version, offset, length int64) (Content, error)
	// Settings tells the settings of a bucket that are not at their defaults.
	Settings(ctx context.Context, bucket string) (Settings, error)
}

// Target is the store that is copied to; what it has is compared with the source.
type Target interface {
	Source
	// CreateBucket creates a bucket, with object lock if asked for. That it is there
	// already is success.
	CreateBucket(ctx context.Context, bucket string, locked bool) error
	// RemoveBucket removes a bucket that is empty. That it is gone is success.
	RemoveBucket(ctx context.Context, bucket string) error
	// Set changes one setting of a bucket; an empty value takes it away. It returns
	// ErrNotOffered for one that the server does not have.
	Set(ctx context.Context, bucket string, name SettingName, value string) error
	// Put stores a version with its id, time of modification, ETag and attributes.
	// It may return ErrExists when a version with that id and ETag is there. The
	// content is compared with the ETag, unless unchecked is set, which is for what
	// has an ETag that is no checksum. Old is the version with its id that was seen,
	// nil for none. What has no id of its own replaces nothing else: then ErrExists
	// is returned, too.
	Put(ctx context.Context, bucket string, v Version, old *Version, content io.Reader, unchecked bool) error
	// Begin begins the upload of a version in parts. After a crash the upload
	// stays; the server removes it some day.
	Begin(ctx context.Context, bucket string, v Version) (upload string, err error)
	// PutPart stores a part; all but the last are of at least 5 MiB.
	PutPart(ctx context.Context, bucket string, v Version, upload string, number int, content io.Reader, size int64) (Part, error)
	// Complete makes a version of all parts. It replaces any version with that id: servers compare
	// a condition with the newest version of the key.
	Complete(ctx context.Context, bucket string, v Version, upload string, parts []Part) error
	// Abort removes an upload that was not completed.
	Abort(ctx context.Context, bucket string, v Version, upload string) error
	// PutMarker stores a delete marker with its id and time.
	PutMarker(ctx context.Context, bucket string, v Version) error
	// Annotate makes tags, retention and legal hold of a stored version, which are
	// as in old, those of v.
	Annotate(ctx context.Context, bucket string, v Version, old Attributes) error
	// Remove removes a version for good. That it is gone is success. It is asked for
	// once, as PutMarker and Annotate are: nobody else may have changed it in between.
	Remove(ctx context.Context, bucket string, v Version) error
}
