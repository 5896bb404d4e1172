package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"iter"

	"github.com/minio/minio-go/v7"
)

// bare is how many objects are listed without attributes after those of one of
// them made a listing unreadable.
const bare = 1000

// Buckets implements [Source].
func (c *Client) Buckets(ctx context.Context) ([]string, error) {
	buckets, err := c.core.ListBuckets(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the buckets of %s: %w", c, explain(err))
	}
	names := make([]string, len(buckets))
	for i, bucket := range buckets {
		names[i] = bucket.Name
	}
	return names, nil
}

// Versions implements [Source]. It uses MinIO's extension that lists attributes
// too. In a listing the names of metadata are names of XML elements, which not
// every name can be; where that makes it unreadable it goes on without them.
func (c *Client) Versions(ctx context.Context, bucket, after string) iter.Seq2[Version, error] {
	return c.list(ctx, bucket, after, minio.ListObjectsOptions{})
}

// few is how many versions of an object are asked for at once. Those of others whose keys
// begin with its key are listed too.
const few = 20

// VersionsOf implements [Source].
func (c *Client) VersionsOf(ctx context.Context, bucket, key string) (versions []Version, err error) {
	for v, err := range c.list(ctx, bucket, "", minio.ListObjectsOptions{Prefix: key, MaxKeys: few}) {
		switch {
		case err != nil:
			return nil, err
		case v.Key != key:
			return versions, nil
		}
		versions = append(versions, v)
	}
	return versions, nil
}

func (c *Client) list(ctx context.Context, bucket, after string, options minio.ListObjectsOptions) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		l := listing{complete: after, options: options, yield: yield}
		for attributes := true; ; attributes = !attributes {
			err := l.run(ctx, c, bucket, attributes)
			var syntax *xml.SyntaxError
			switch {
			case l.ended:
				return
			case err == nil: // enough without attributes
			case !attributes || !errors.As(err, &syntax):
				yield(Version{}, failed("list the objects of bucket", bucket, "", err))
				return
			}
		}
	}
}

// listing is how far a list has come.
type listing struct {
	options minio.ListObjectsOptions
	yield   func(Version, error) bool
	// complete is the key up to which everything was yielded, current the next
	// one, of which the versions in seen were.
	complete, current string
	seen              map[string]bool
	ended             bool
}

// run lists on until the end, or without attributes until some objects further.
func (l *listing) run(ctx context.Context, c *Client, bucket string, attributes bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	options := l.options
	options.WithVersions, options.WithMetadata, options.Recursive, options.StartAfter = true, attributes, true, l.complete
	count := 0
	for object := range c.core.ListObjectsIter(ctx, bucket, options) {
		if object.Err != nil {
			return object.Err
		}
		if !attributes && count >= bare && object.Key != l.current {
			return nil
		}
		count++
		if !l.next(toVersion(&object, attributes)) {
			l.ended = true
			return nil
		}
	}
	l.ended = ctx.Err() == nil
	return ctx.Err()
}

// next yields a version, unless it was already.
func (l *listing) next(v Version) bool {
	if l.seen == nil || v.Key != l.current {
		if l.seen != nil {
			l.complete = l.current
		}
		l.current, l.seen = v.Key, make(map[string]bool, 1)
	}
	if l.seen[v.ID] {
		return true
	}
	l.seen[v.ID] = true
	return l.yield(v, nil)
}

// toVersion is a version as it was listed.
func toVersion(object *minio.ObjectInfo, attributes bool) Version {
	v := Version{
		Key: object.Key, ID: object.VersionID, DeleteMarker: object.IsDeleteMarker,
		Size: object.Size, ETag: object.ETag, Modified: object.LastModified.UTC(),
	}
	if v.ID == "" {
		v.ID = NullVersion
	}
	if v.DeleteMarker {
		v.Size, v.ETag = 0, ""
	} else if attributes {
		v.Attributes = listed(object)
	}
	return v
}
