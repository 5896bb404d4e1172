package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// HealBegun is a pass of healing that has begun.
type HealBegun struct {
	// Token is what the pass is asked about with. It is no secret: it takes the
	// credentials too.
	Token string
	// At is when, by the server's clock.
	At time.Time
}

// HealNews is how far a pass is. Each item is told once.
type HealNews struct {
	// Ended: the server looks at nothing more. Failed says why that is before the end of all,
	// where it is.
	Ended  bool
	Failed string
	Items  []HealItem
}

// HealItem is something that a pass has looked at: a bucket, a version of an object, or what
// the server keeps of itself.
type HealItem struct {
	// Index counts the items of a pass, from 1.
	Index int64
	Kind  HealKind
	// Bucket, Key and Version name it; a version that has no id is [NullVersion].
	Bucket, Key, Version string
	// Detail is what went wrong, in the server's words, empty if nothing did.
	Detail string
	// Of is how many drives should have a part of it, 0 where the server does not say.
	Of int
	// Before and After are the states of those drives, before the pass had come here and
	// after it was done.
	Before, After []DriveState
}

// HealKind is what kind of thing an item is.
type HealKind string

// The kinds that EKCO tells apart.
const (
	HealedBucket HealKind = "bucket"
	HealedObject HealKind = "object"
)

// DriveState is what a drive has of an item.
type DriveState struct{ Drive, State string }

// DriveOK is the state of a drive that has all that it should, DriveMissing of one that has
// nothing.
const (
	DriveOK      = "ok"
	DriveMissing = "missing"
)

// healPage is where the server is asked to make a pass, and about it.
const healPage = admin + "/heal/"

// everything asks for a pass over all buckets and what the server keeps of itself, which
// looks whether each drive has its part of each version. It does not read what they have.
const everything = `{"recursive":true,"scanMode":1}`

// BeginHeal has this server begin a pass over all objects, which repairs what lacks a part on
// some drive. It returns ErrHealing if the server makes one already. The other servers of the
// store know nothing of it.
func (c *Client) BeginHeal(ctx context.Context) (HealBegun, error) {
	asked, err := c.clock(ctx)
	if err != nil {
		return HealBegun{}, fmt.Errorf("start a healing scan on %s: %w", c, err)
	}
	answer, err := c.request(ctx, http.MethodPost, healPage, "", []byte(everything))
	var begun struct {
		ClientToken string
		StartTime   time.Time
	}
	if err == nil {
		err = healAnswer(answer, &begun)
	}
	if err != nil {
		return HealBegun{}, fmt.Errorf("start a healing scan on %s: %w", c, healError(err))
	}
	if begun.ClientToken == "" || begun.StartTime.IsZero() {
		return HealBegun{}, fmt.Errorf("start a healing scan on %s: the answer has no token or no start time", c)
	}
	// While a pass runs, MinIO may answer a second request with that pass. Its results belong to
	// the client that began it, and may be old. Such a pass began before the server was asked for
	// its time. Whole seconds do not show this: a busy server may return a pass that began in the
	// same second.
	if begun.StartTime.Before(asked) {
		return HealBegun{}, fmt.Errorf("start a healing scan on %s: %w, since %s", c, ErrHealing, begun.StartTime.UTC().Format(time.RFC3339))
	}
	return HealBegun{Token: begun.ClientToken, At: begun.StartTime}, nil
}

// clock returns the server's time, rounded down to a second if it reports no exact time.
func (c *Client) clock(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultHealthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.String()+"/minio/health/live", http.NoBody)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	response, err := c.caller().Do(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	return serverTime(response.Header)
}

// serverTime returns the server's time from response headers. MinIO's request ID is the time in
// nanoseconds, in hexadecimal. If it does not match the header Date, Date is used.
func serverTime(header http.Header) (time.Time, error) {
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the server's time: %w", err)
	}
	if nanoseconds, err := strconv.ParseInt(header.Get("X-Amz-Request-Id"), 16, 64); err == nil {
		if exact := time.Unix(0, nanoseconds); exact.Truncate(time.Second).Equal(date) {
			return exact, nil
		}
	}
	return date, nil
}

// HealNews asks how far a pass is, and takes what it has looked at since it was asked last:
// where the answer is lost, so are its items. With more than 1000 that nobody took the pass
// waits, for a day. It returns ErrForgotten if there is no such pass.
func (c *Client) HealNews(ctx context.Context, token string) (HealNews, error) {
	answer, err := c.request(ctx, http.MethodPost, healPage, url.Values{"clientToken": {token}}.Encode(), nil)
	var told healTold
	if err == nil {
		err = healAnswer(answer, &told)
	}
	if err != nil {
		return HealNews{}, fmt.Errorf("ask %s about a healing scan: %w", c, healError(err))
	}
	// Of a pass that it does not know, it says that it has finished.
	if told.Summary == "" || told.StartTime.IsZero() && told.Summary == finished {
		return HealNews{}, fmt.Errorf("ask %s about a healing scan: %w", c, ErrForgotten)
	}
	return told.news(), nil
}

// The states of a pass that has ended.
const (
	finished = "finished"
	stopped  = "stopped"
)

// healTold is the part of the answer that is of interest.
type healTold struct {
	Summary, Detail string
	StartTime       time.Time
	Items           []healItem
}

type healItem struct {
	ResultID                          int64 `json:"resultId"`
	Type                              HealKind
	Bucket, Object, VersionID, Detail string
	DiskCount                         int
	Before, After                     struct {
		Drives []struct{ Endpoint, State string }
	}
}

func (t healTold) news() HealNews {
	news := HealNews{Ended: t.Summary == finished || t.Summary == stopped, Items: make([]HealItem, len(t.Items))}
	if t.Summary == stopped {
		news.Failed = "the server gave up: " + t.Detail
	}
	for i, told := range t.Items {
		one := HealItem{
			Index: told.ResultID, Kind: told.Type, Bucket: told.Bucket, Key: told.Object, Version: told.VersionID,
			Detail: told.Detail, Of: told.DiskCount,
		}
		if one.Version == "" && one.Kind == HealedObject {
			one.Version = NullVersion
		}
		for _, drive := range told.Before.Drives {
			one.Before = append(one.Before, DriveState{drive.Endpoint, drive.State})
		}
		for _, drive := range told.After.Drives {
			one.After = append(one.After, DriveState{drive.Endpoint, drive.State})
		}
		news.Items[i] = one
	}
	return news
}

// healAnswer reads an answer, which may be a refusal that comes after the server had begun to
// answer that all is well.
func healAnswer(answer []byte, into any) error {
	answer = bytes.TrimSpace(answer)
	var refused minio.ErrorResponse
	if err := json.Unmarshal(answer, &refused); err == nil && strings.HasPrefix(refused.Code, "XMinio") {
		refused.StatusCode = http.StatusBadRequest
		return refused
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	return nil
}

// healError adds what a refusal means here. Of a pass that another client began the server's
// words tell the token, which is nobody else's.
func healError(err error) error {
	if err = explain(err); errors.Is(err, ErrHealing) {
		return ErrHealing
	}
	return err
}
