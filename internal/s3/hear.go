package s3

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Removal is what a client, or a lifecycle, had a server remove: a version, all versions of an object where it
// has no ID, or a bucket with all that it had where it has no key either.
type Removal struct {
	Bucket, Key, ID string
	// At is when, by the server's clock.
	At time.Time
}

// removals asks for events of all buckets, and for a sign of life each second.
var removals = url.Values{"events": {"s3:ObjectRemoved:*", "s3:BucketRemoved:*"}, "prefix": {""}, "suffix": {""}, "ping": {"1"}}

// Hear reports each removal from when it calls connected until the error that ends it. A server drops events
// that it cannot send fast enough, ends each connection after an hour, and does not report that a lifecycle
// removed a delete marker: no event is no proof that nothing was removed.
func (c *Client) Hear(ctx context.Context, connected func(), heard func(Removal)) error {
	response, err := c.send(ctx, http.MethodGet, "/", removals.Encode(), nil)
	if err != nil {
		return fmt.Errorf("listen to the events of %s: %w", c, explain(err))
	}
	defer response.Body.Close()
	connected()
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
	case "s3:ObjectRemoved:DeleteAllVersions":
	case "s3:BucketRemoved:*":
		removal.Key = ""
	default:
		return Removal{}, false
	}
	return removal, removal.Bucket != ""
}
