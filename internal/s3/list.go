package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"iter"

	"github.com/minio/minio-go/v7"
)

// objectsWithoutAttributes is the number of versions that are listed without attributes after attributes have made a
// listing unreadable.
const objectsWithoutAttributes = 1000

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

// Versions implements [Source]. It uses MinIO's extension that also lists attributes. A listing uses the names of
// metadata as names of XML elements, so some characters make it unreadable. Versions then continues without attributes.
func (c *Client) Versions(ctx context.Context, bucket, after string) iter.Seq2[Version, error] {
	return c.list(ctx, bucket, after, minio.ListObjectsOptions{})
}

// versionsPageSize is the page size of VersionsOf. It is small, because the listing also has all objects whose keys
// start with the key.
const versionsPageSize = 20

// VersionsOf implements [Source].
func (c *Client) VersionsOf(ctx context.Context, bucket, key string) (versions []Version, err error) {
	for v, err := range c.list(ctx, bucket, "", minio.ListObjectsOptions{Prefix: key, MaxKeys: versionsPageSize}) {
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
			case err == nil: // after enough objects without attributes
			case !attributes || !errors.As(err, &syntax):
				yield(Version{}, addContext("list the objects of bucket", bucket, "", err))
				return
			}
		}
	}
}

// listing is the progress of a listing.
type listing struct {
	options minio.ListObjectsOptions
	yield   func(Version, error) bool
	// All versions of the keys up to complete were yielded. current is the next key, and seen has its versions that were
	// yielded.
	complete, current string
	seen              map[string]bool
	ended             bool
}

// run continues the listing to its end. Without attributes, it stops at the first new object after
// [objectsWithoutAttributes] versions.
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
		if !attributes && count >= objectsWithoutAttributes && object.Key != l.current {
			return nil
		}
		count++
		if !l.yieldNew(toVersion(&object, attributes)) {
			l.ended = true
			return nil
		}
	}
	l.ended = ctx.Err() == nil
	return ctx.Err()
}

// yieldNew yields the version, unless it was yielded before.
func (l *listing) yieldNew(v Version) bool {
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

// toVersion converts a listed version.
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
	} else if attributes && object.Internal != nil { // servers from before April 2023 list no attributes
		v.Attributes = listedAttributes(object)
	}
	return v
}
