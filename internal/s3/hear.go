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

// Removal is a removal by a client or a lifecycle rule. It concerns one version. If ID is empty, it concerns all
// versions of an object. If Key is also empty, it concerns a bucket with all its objects.
type Removal struct {
	Bucket, Key, ID string
	// At is the time of the removal by the server's clock.
	At time.Time
	// Nothing is set if the version did not exist.
	Nothing bool
}

// removalEvents requests the removals in all buckets, and a keep-alive each second.
var removalEvents = url.Values{"events": {"s3:ObjectRemoved:*", "s3:BucketRemoved:*"}, "prefix": {""}, "suffix": {""}, "ping": {"1"}}

// ListenForRemovals calls heard for each removal until an error occurs. It can miss removals: a server drops events
// that it cannot send fast enough, closes each connection after an hour, and does not report delete markers that a
// lifecycle rule removes. Some servers delay events until they have 4 KiB of them; see [Client.TriggerEvent].
func (c *Client) ListenForRemovals(ctx context.Context, heard func(Removal)) error {
	response, err := c.send(ctx, http.MethodGet, "/", removalEvents.Encode(), nil)
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

// TriggerEvent makes the server send an event: it requests the removal of a version and a key that do not exist.
func (c *Client) TriggerEvent(ctx context.Context, bucket, key string) error {
	err := c.core.RemoveObject(ctx, bucket, key, minio.RemoveObjectOptions{VersionID: noVersion})
	if err = explain(err); err != nil && !errors.Is(err, ErrGone) {
		return addContext("ask for an event of", bucket, key, err)
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

// removal returns the removal that an event reports. It returns false for the creation of a delete marker, which
// removes nothing. MinIO reports the removal of a delete marker like the removal of a version.
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
