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

// HealBegun is a healing scan that has started.
type HealBegun struct {
	// Token identifies the scan in later requests. It is not secret, because these requests also need the
	// credentials.
	Token string
	// At is the start of the scan by the server's clock.
	At time.Time
}

// HealNews is the progress of a scan. Each item is reported once.
type HealNews struct {
	// Ended is set when the scan has ended. Failed is the reason if the scan ended early.
	Ended  bool
	Failed string
	Items  []HealItem
}

// HealItem is a scanned item: a bucket, a version of an object, or the server's own data.
type HealItem struct {
	// Index counts the items of a scan, from 1.
	Index int64
	Kind  HealKind
	// Bucket, Key and Version name the item. A version without an id is [NullVersion].
	Bucket, Key, Version string
	// Detail is the server's error message, or empty.
	Detail string
	// Of is the number of drives that should have a part of the item. It is 0 if the server does not report it.
	Of int
	// Before and After are the states of the drives before and after the scan of the item.
	Before, After []DriveState
}

// HealKind is the kind of an item.
type HealKind string

// The kinds that EKCO distinguishes.
const (
	HealedBucket HealKind = "bucket"
	HealedObject HealKind = "object"
)

// DriveState is the state of an item on a drive.
type DriveState struct{ Drive, State string }

// The states of a drive: with DriveOK it has its part of the item, and with DriveMissing it has no part.
const (
	DriveOK      = "ok"
	DriveMissing = "missing"
)

// healPath is the path of requests about healing scans.
const healPath = adminPath + "/heal/"

// scanEverything is the body of a request to scan all buckets and the server's own data. The scan checks whether
// each drive has its part of each version, but does not read the contents.
const scanEverything = `{"recursive":true,"scanMode":1}`

// BeginHeal starts a healing scan of all objects. The scan restores missing parts. BeginHeal returns ErrHealing if
// the server already runs a scan. The other servers of the store do not know the scan.
func (c *Client) BeginHeal(ctx context.Context) (HealBegun, error) {
	asked, err := c.clock(ctx)
	if err != nil {
		return HealBegun{}, fmt.Errorf("start a healing scan on %s: %w", c, err)
	}
	answer, err := c.request(ctx, http.MethodPost, healPath, "", []byte(scanEverything))
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
	// While a scan runs, MinIO may answer a second request with the running scan. Its results belong to the
	// client that started it. EKCO detects this because the running scan started before asked, the time at which
	// EKCO read the server's clock. The comparison needs fractions of a second: the running scan may have started in
	// the same second.
	if begun.StartTime.Before(asked) {
		return HealBegun{}, fmt.Errorf("start a healing scan on %s: %w, since %s", c, ErrHealing, begun.StartTime.UTC().Format(time.RFC3339))
	}
	return HealBegun{Token: begun.ClientToken, At: begun.StartTime}, nil
}

// clock returns the server's time. It is rounded down to a second if the server reports no exact time.
func (c *Client) clock(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultHealthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.String()+"/minio/health/live", http.NoBody)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	response, err := c.httpClient().Do(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return time.Time{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	return serverTime(response.Header)
}

// serverTime reads the server's time from response headers. MinIO's request ID is the time in hexadecimal
// nanoseconds. If the ID does not match the header Date, serverTime returns Date.
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

// HealNews returns the items that were scanned since the last call. If an answer is lost, its items are lost. When
// more than 1000 items are not collected, the server pauses the scan, for up to a day. HealNews returns
// ErrForgotten if the server does not know the scan.
func (c *Client) HealNews(ctx context.Context, token string) (HealNews, error) {
	answer, err := c.request(ctx, http.MethodPost, healPath, url.Values{"clientToken": {token}}.Encode(), nil)
	var body healAnswerBody
	if err == nil {
		err = healAnswer(answer, &body)
	}
	if err != nil {
		return HealNews{}, fmt.Errorf("ask %s about a healing scan: %w", c, healError(err))
	}
	// The server reports a scan that it does not know as finished.
	if body.Summary == "" || body.StartTime.IsZero() && body.Summary == finished {
		return HealNews{}, fmt.Errorf("ask %s about a healing scan: %w", c, ErrForgotten)
	}
	return body.news(), nil
}

// The states of a scan that has ended.
const (
	finished = "finished"
	stopped  = "stopped"
)

// healAnswerBody is the part of the answer that EKCO reads.
type healAnswerBody struct {
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

func (t healAnswerBody) news() HealNews {
	news := HealNews{Ended: t.Summary == finished || t.Summary == stopped, Items: make([]HealItem, len(t.Items))}
	if t.Summary == stopped {
		news.Failed = "the server gave up: " + t.Detail
	}
	for i, item := range t.Items {
		one := HealItem{
			Index: item.ResultID, Kind: item.Type, Bucket: item.Bucket, Key: item.Object, Version: item.VersionID,
			Detail: item.Detail, Of: item.DiskCount,
		}
		if one.Version == "" && one.Kind == HealedObject {
			one.Version = NullVersion
		}
		for _, drive := range item.Before.Drives {
			one.Before = append(one.Before, DriveState{drive.Endpoint, drive.State})
		}
		for _, drive := range item.After.Drives {
			one.After = append(one.After, DriveState{drive.Endpoint, drive.State})
		}
		news.Items[i] = one
	}
	return news
}

// healAnswer parses an answer. The server may send an error even after the status 200.
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

// healError explains an error. If another client runs a scan, it leaves out the server's text, because the text
// contains the token of that scan.
func healError(err error) error {
	if err = explain(err); errors.Is(err, ErrHealing) {
		return ErrHealing
	}
	return err
}
