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

// Removal is a removal by a client or a lifecycle rule: of a version, of all versions of an object
// if ID is empty, or of a bucket with all its objects if Key is empty, too.
type Removal struct {
	Bucket, Key, ID string
	// At is the time by the server's clock.
	At time.Time
	// Nothing is set if the version did not exist.
	Nothing bool
}

// removals requests the events of all buckets, and a sign of life each second.
var removals = url.Values{"events": {"s3:ObjectRemoved:*", "s3:BucketRemoved:*"}, "prefix": {""}, "suffix": {""}, "ping": {"1"}}

// Hear reports each removal until an error ends it. A server drops events that it cannot send fast
// enough, closes each connection after an hour, and does not report that a lifecycle rule removed a
// delete marker. So no event does not mean that nothing was removed. Some servers delay events
// until there are 4 KiB of them; see [Client.Echo].
func (c *Client) Hear(ctx context.Context, heard func(Removal)) error {
	response, err := c.send(ctx, http.MethodGet, "/", removals.Encode(), nil)
	if err != nil {
		return fmt.Errorf("listen to the events of %s: %w", c, explain(err))
	}
	defer response.Body.Close()
	for events := json.NewDecoder(response.Body); ; {
		var body struct{ Records []event }
		if err := events.Decode(&body); err != nil {
			return fmt.Errorf("listen to the events of %s: %w", c, err)
		}
		for _, e := range body.Records {
			if removal, is := e.removal(); is {
				heard(removal)
			}
		}
	}
}

// noVersion is an id that no version has.
const noVersion = "00000000-0000-4000-8000-000000000000"

// Echo makes the server send an event: it asks to remove a version that does not exist, of a key
// that does not exist.
func (c *Client) Echo(ctx context.Context, bucket, key string) error {
	err := c.core.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{VersionID: noVersion})
	if err = explain(err); err != nil && !errors.Is(err, ErrGone) {
		return failed("ask for an event of", bucket, key, err)
	}
	return nil
}

// event is the part of an event that EKCO reads.
type event struct {
	EventName string
	EventTime time.Time
	S3        struct {
		Bucket struct{ Name string }
		Object struct{ Key, VersionID string }
	}
}

// removal returns what an event reports as removed. Creating a delete marker removes nothing; MinIO
// reports the removal of a marker in the same way.
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
