package s3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/minio/minio-go/v7"
)

// Removal is what a client, or a lifecycle, had a server remove: a version, all versions of an object where it
// has no ID, or a bucket with all that it had where it has no key either.
type Removal struct {
	Bucket, Key, ID string
	// At is when, by the server's clock.
	At time.Time
	// Nothing is set if what was to be removed was not there.
	Nothing bool
}

// removals asks for events of all buckets, and for a sign of life each second.
var removals = url.Values{"events": {"s3:ObjectRemoved:*", "s3:BucketRemoved:*"}, "prefix": {""}, "suffix": {""}, "ping": {"1"}}

// Hear reports each removal until the error that ends it. A server drops events that it cannot send fast enough, ends
// each connection after an hour, and does not report that a lifecycle removed a delete marker: no event is no proof
// that nothing was removed. Some keep events back until there are 4 KiB of them; see [Client.Echo].
func (c *Client) Hear(ctx context.Context, heard func(Removal)) error {
	response, err := c.send(ctx, http.MethodGet, "/", removals.Encode(), nil)
	if err != nil {
		return fmt.Errorf("listen to the events of %s: %w", c, explain(err))
	}
	defer response.Body.Close()
	for events := json.NewDecoder(response.Body); ; {
		var told struct{ Records []event }
		if err := events.Decode(&told); err != nil {
			return fmt.Errorf("listen to the events of %s: %w", c, err)
		}
		for _, e := range told.Records {
			if removal, is := e.removal(); is {
				heard(removal)
			}
		}
	}
}

// noVersion is the id of no version.
const noVersion = "00000000-0000-4000-8000-000000000000"

// Echo has the server report that a client asked to remove nothing: a version that is not there, of a key that is none.
func (c *Client) Echo(ctx context.Context, bucket, key string) error {
	err := c.core.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{VersionID: noVersion})
	if err = explain(err); err != nil && !errors.Is(err, ErrGone) {
		return failed("ask for an event of", bucket, key, err)
	}
	return nil
}

// event is the part of an event that is of interest.
type event struct {
	EventName string
	EventTime time.Time
	S3        struct {
		Bucket struct{ Name string }
		Object struct{ Key, VersionID string }
	}
}

// removal returns what was removed. A delete marker that was created removes nothing, and a removed one is
// reported in the same way.
func (e event) removal() (Removal, bool) {
	removal := Removal{Bucket: e.S3.Bucket.Name, Key: e.S3.Object.Key, At: e.EventTime}
	switch e.EventName {
	case "s3:ObjectRemoved:Delete":
		removal.ID = cmp.Or(e.S3.Object.VersionID, NullVersion)
	case "s3:ObjectRemoved:NoOP":
		removal.ID, removal.Nothing = cmp.Or(e.S3.Object.VersionID, NullVersion), true
	case "s3:ObjectRemoved:DeleteAllVersions":
	case "s3:BucketRemoved:*":
		removal.Key = ""
	default:
		return Removal{}, false
	}
	return removal, removal.Bucket != ""
}
