package s3

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// Open implements [Source].
func (c *Client) Open(ctx context.Context, bucket string, v Version, offset, length int64) (Content, error) {
	if v.Attributes != nil && v.Attributes.Encryption == SSEC {
		return Content{}, addContext("read object", bucket, v.Key, ErrUnreadable)
	}
	options := minio.GetObjectOptions{VersionID: v.ID}
	if err := options.SetMatchETag(v.ETag); err != nil {
		return Content{}, addContext("read object", bucket, v.Key, err)
	}
	if offset > 0 || length < v.Size {
		if err := options.SetRange(offset, offset+length-1); err != nil {
			return Content{}, addContext("read object", bucket, v.Key, err)
		}
	}
	content, info, _, err := c.core.GetObject(ctx, bucket, v.Key, options)
	if err != nil {
		if code := minio.ToErrorResponse(err).Code; code == minio.PreconditionFailed {
			err = ErrGone
		}
		return Content{}, addContext("read object", bucket, v.Key, err)
	}
	if info.Size != length {
		_ = content.Close() // which also closes the connection
		return Content{}, addContext("read object", bucket, v.Key, fmt.Errorf("%w: %d bytes instead of %d", ErrGone, info.Size, length))
	}
	headers := joinHeaders(info.Headers)
	maps.DeleteFunc(headers, func(name, _ string) bool { return !isStoredHeader(name) })
	return Content{ReadCloser: content, Expires: info.Headers.Get(expires), Headers: headers}, nil
}

// Put implements [Target].
func (c *Client) Put(ctx context.Context, bucket string, v Version, old *Version, content io.Reader, unchecked bool) error {
	options, md5 := putOptions(v), ""
	replaceOnly(&options, v, old)
	if sum, err := hex.DecodeString(v.ETag); err == nil && !unchecked {
		// The ETag is the MD5 of the content, so the server computes it anyway. If the request had the ETag, the
		// server would first search all its drives for the version.
		md5, options.Internal.SourceETag = base64.StdEncoding.EncodeToString(sum), ""
	} else {
		options.DisableContentSha256 = false
	}
	_, err := c.core.PutObject(ctx, bucket, v.Key, content, v.Size, md5, "", options)
	return putError("store object", bucket, v.Key, err)
}

// replaceOnly makes a server replace only the old version, because a client may have written another version with
// the same id. Servers do not support this condition for removals.
func replaceOnly(options *minio.PutObjectOptions, v Version, old *Version) {
	switch {
	case v.ID != NullVersion:
	case old == nil:
		options.SetMatchETagExcept("*")
	default:
		options.SetMatchETag(old.ETag)
	}
}

// putError explains an error of a request that stores a version.
func putError(what, bucket, key string, err error) error {
	if err == nil {
		return nil
	}
	response := minio.ToErrorResponse(err)
	switch {
	case response.Code == minio.PreconditionFailed:
		err = ErrExists
	case strings.Contains(response.Message, "WORM"):
		err = ErrLocked
	}
	return addContext(what, bucket, key, err)
}

// Begin implements [Target].
func (c *Client) Begin(ctx context.Context, bucket string, v Version) (string, error) {
	upload, err := c.core.NewMultipartUpload(ctx, bucket, v.Key, putOptions(v))
	return upload, putError("begin to store object", bucket, v.Key, err)
}

// PutPart implements [Target].
func (c *Client) PutPart(ctx context.Context, bucket string, v Version, upload string, number int, content io.Reader, size int64) (Part, error) {
	options := minio.PutObjectPartOptions{SSE: putOptions(v).ServerSideEncryption}
	part, err := c.core.PutObjectPart(ctx, bucket, v.Key, upload, number, content, size, options)
	if err != nil {
		return Part{}, putError(fmt.Sprintf("store part %d of object", number), bucket, v.Key, err)
	}
	return Part{Number: number, ETag: part.ETag}, nil
}

// Complete implements [Target].
func (c *Client) Complete(ctx context.Context, bucket string, v Version, upload string, parts []Part) error {
	complete := make([]minio.CompletePart, len(parts))
	for i, part := range parts {
		complete[i] = minio.CompletePart{PartNumber: part.Number, ETag: part.ETag}
	}
	// Begin has sent the attributes; the server refuses them here.
	options := minio.PutObjectOptions{Internal: minio.AdvancedPutOptions{
		SourceETag: v.ETag, SourceMTime: v.Modified, ReplicationRequest: true,
	}}
	_, err := c.core.CompleteMultipartUpload(ctx, bucket, v.Key, upload, complete, options)
	return putError("complete object", bucket, v.Key, err)
}

// Abort implements [Target].
func (c *Client) Abort(ctx context.Context, bucket string, v Version, upload string) error {
	err := c.core.AbortMultipartUpload(ctx, bucket, v.Key, upload)
	if err != nil && minio.ToErrorResponse(err).Code != minio.NoSuchUpload {
		return addContext("abort the upload of object", bucket, v.Key, err)
	}
	return nil
}

// PutMarker implements [Target].
func (c *Client) PutMarker(ctx context.Context, bucket string, v Version) error {
	err := c.noRetry.RemoveObject(ctx, bucket, v.Key, minio.RemoveObjectOptions{
		VersionID: v.ID,
		Internal:  minio.AdvancedRemoveOptions{ReplicationDeleteMarker: true, ReplicationMTime: v.Modified, ReplicationRequest: true},
	})
	return putError("store the delete marker of object", bucket, v.Key, err)
}

// Remove implements [Target].
func (c *Client) Remove(ctx context.Context, bucket string, v Version) error {
	err := c.noRetry.RemoveObject(ctx, bucket, v.Key, minio.RemoveObjectOptions{
		VersionID: v.ID, GovernanceBypass: true,
		Internal: minio.AdvancedRemoveOptions{ReplicationRequest: true},
	})
	if err = putError("remove object", bucket, v.Key, err); errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// asideTag marks a bucket that [Client.SetAside] created.
const asideTag = "<Key>ekco-set-aside</Key>"

// MaxKey is the maximum length of a key in bytes.
const MaxKey = 1024

// IsAside reports whether the settings belong to a bucket that [Client.SetAside] created.
func IsAside(settings Settings) bool { return strings.Contains(settings[BucketTags], asideTag) }

// AsideName returns the key under which SetAside stores a version. The key is different for each version, even for
// versions without their own id.
func AsideName(bucket string, v Version) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", v.Key, v.ID, v.Modified.UnixMilli()))
	return fmt.Sprintf("%s/%s/%s-%x", bucket, strings.TrimRight(v.Key, "/"), v.ID, sum[:4])
}

// SetAside copies a version to another bucket of the same server, and creates the bucket if needed. It copies no
// delete markers. It returns [ErrTaken] if a client has created a bucket with that name.
func (c *Client) SetAside(ctx context.Context, bucket string, v Version, to string) error {
	switch has, err := c.Settings(ctx, to); {
	case errors.Is(err, ErrGone):
		if err := c.CreateBucket(ctx, to, false); err != nil {
			return err
		}
		if err := c.Set(ctx, to, BucketTags, "<Tagging><TagSet><Tag>"+asideTag+"<Value>true</Value></Tag></TagSet></Tagging>"); err != nil {
			return err
		}
	case err != nil:
		return err
	case !IsAside(has):
		return addContext("set aside object", bucket, v.Key, fmt.Errorf("%w: %s", ErrTaken, to))
	}
	name := AsideName(bucket, v)
	switch {
	case v.DeleteMarker:
		return nil
	case len(name) > MaxKey:
		return addContext("set aside object", bucket, v.Key, refused{minio.ErrorResponse{Message: "its key is too long"}})
	}
	has, err := c.Describe(ctx, bucket, v)
	if err != nil {
		return err
	}
	aside := minio.CopyDestOptions{Bucket: to, Object: name, UserMetadata: has.Headers, ReplaceMetadata: true, UserTags: has.Tags, ReplaceTags: true}
	if has.Encryption != Unencrypted {
		aside.Encryption = encrypt.NewSSE()
	}
	if _, err := c.core.ComposeObject(ctx, aside, minio.CopySrcOptions{Bucket: bucket, Object: v.Key, VersionID: v.ID}); err != nil {
		return addContext("set aside object", bucket, v.Key, err)
	}
	return nil
}
