package s3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// mostLacking is how many things are named that are not whole.
const mostLacking = 1000

// HealPass is what came of a look through all that a store keeps.
type HealPass struct {
	// Items is how many things were looked at: buckets, versions, and what the server keeps
	// for itself.
	Items int64
	// Lacking says, by name, what those lack that are not whole on every drive after the
	// pass; More is how many others there are beyond those that are named.
	Lacking map[string]string
	More    int64
}

// Whole reports whether everything is whole on every drive.
func (p HealPass) Whole() bool { return len(p.Lacking) == 0 && p.More == 0 }

const (
	// healPoll is how often it is asked how far a pass is.
	healPoll = time.Second
	// healConfirm is how long after its end it is asked again: one that somebody stops, or
	// whose server ends, says for a moment that it is finished.
	healConfirm = 3 * time.Second
)

// Heal has the store look at all it keeps on all its drives, make whole what is not, and
// returns what is not whole even then. It is told from time to time how many things were
// looked at. Contents are not read: bit rot is not found.
//
// A pass that is under way already is drained, since servers have one at a time and stop
// when nobody takes what they found; but it proves nothing, as others may have taken a part
// of that: the error is [ErrHealing] then, and another call begins anew. Nor does one that
// a server forgot because it was restarted. What is written or removed meanwhile may be
// named as lacking.
func (c *Client) Heal(ctx context.Context, report func(items int64)) (HealPass, error) {
	pass, err := c.heal(ctx, report)
	if err != nil {
		return HealPass{}, fmt.Errorf("have %s look through all it keeps: %w", c, explain(err))
	}
	return pass, nil
}

func (c *Client) heal(ctx context.Context, report func(items int64)) (HealPass, error) {
	asked, err := c.clock(ctx)
	if err != nil {
		return HealPass{}, err
	}
	token, began, err := c.startHeal(ctx)
	if err != nil {
		return HealPass{}, err
	}
	pass, err := follow(ctx, func() (healStatus, error) { return c.healStatus(ctx, token) }, report)
	if err == nil && began.Before(asked) {
		// Nobody has taken anything of it, and it waited with what it saw then: a drive may
		// have been replaced since.
		return HealPass{}, ErrHealing
	}
	return pass, err
}

// clock returns the server's time in whole seconds, by which it says when a pass began.
func (c *Client) clock(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultHealthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.String()+"/minio/health/live", http.NoBody)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for its time: %w", err)
	}
	response, err := c.caller().Do(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for its time: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return time.Time{}, fmt.Errorf("ask for its time: %w", err)
	}
	now, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read its time: %w", err)
	}
	return now, nil
}

// follow asks how far a pass is until it has come to its end.
func follow(ctx context.Context, ask func() (healStatus, error), report func(items int64)) (HealPass, error) {
	found := healResult{pass: HealPass{Lacking: make(map[string]string)}}
	for {
		status, err := ask()
		if err != nil {
			return HealPass{}, err
		}
		switch {
		case status.Summary == healStopped:
			return HealPass{}, fmt.Errorf("it gave up: %s", status.Detail)
		case status.Summary == healFinished && status.StartTime.IsZero():
			return HealPass{}, errors.New("it does not know of it any more; perhaps its server was restarted, or somebody stopped it")
		}
		if found.ended && len(status.Items) == 0 {
			return found.whole()
		}
		found.take(status)
		report(found.pass.Items)
		if err := pause(ctx, found.rest(status)); err != nil {
			return HealPass{}, err
		}
	}
}

// pause waits that long, unless ctx ends.
func pause(ctx context.Context, span time.Duration) error {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// healPath is that of everything.
const healPath = admin + "/heal/"

// startHeal returns what a pass is asked for by, and when it began.
func (c *Client) startHeal(ctx context.Context) (token string, began time.Time, err error) {
	// Scan mode 1 looks whether all parts are there, and reads none.
	answer, err := c.request(ctx, http.MethodPost, healPath, "", []byte(`{"recursive":true,"scanMode":1}`))
	if errors.Is(explain(err), ErrHealing) {
		return "", time.Time{}, ErrHealing // without the server's words, which tell the token
	}
	if err != nil {
		return "", time.Time{}, err
	}
	var started struct {
		ClientToken string
		StartTime   time.Time
	}
	if err := json.Unmarshal(answer, &started); err != nil || started.ClientToken == "" {
		return "", time.Time{}, errors.New("it does not say under which name it does so")
	}
	return started.ClientToken, started.StartTime, nil
}

// What a server says of how far it is.
const (
	healFinished = "finished"
	healStopped  = "stopped"
)

type healStatus struct {
	Summary, Detail string
	// StartTime is none for a pass that the server does not know any more: it calls that one
	// finished.
	StartTime time.Time
	Items     []healItem
}

type healItem struct {
	// Index counts what a pass found, from 1.
	Index                     int64 `json:"resultId"`
	Bucket, Object, VersionID string
	Detail                    string
	After                     struct {
		Drives []struct{ Endpoint, State string }
	}
}

func (c *Client) healStatus(ctx context.Context, token string) (status healStatus, err error) {
	answer, err := c.request(ctx, http.MethodPost, healPath, url.Values{"clientToken": {token}}.Encode(), nil)
	if err != nil {
		return healStatus{}, err
	}
	if err := json.Unmarshal(answer, &status); err != nil {
		return healStatus{}, fmt.Errorf("read how far it is: %w", err)
	}
	return status, nil
}

// healResult gathers what a pass finds.
type healResult struct {
	pass HealPass
	last int64
	// shared is set when others took a part of what was found.
	shared bool
	// ended is set when the server said so last.
	ended bool
}

// rest is how long it is waited before the server is asked again.
func (r *healResult) rest(status healStatus) time.Duration {
	switch {
	case r.ended:
		return healConfirm
	case len(status.Items) > 0:
		return healPoll / 10 // the server waits as long as nobody takes what it found
	}
	return healPoll
}

func (r *healResult) take(status healStatus) {
	r.ended = status.Summary == healFinished
	for _, item := range status.Items {
		r.shared = r.shared || item.Index != r.last+1
		r.last = item.Index
		r.pass.Items++
		lacks := item.lacks()
		switch {
		case lacks == "":
		case len(r.pass.Lacking) < mostLacking:
			r.pass.Lacking[item.name()] = lacks
		default:
			r.pass.More++
		}
	}
}

func (r *healResult) whole() (HealPass, error) {
	if r.shared {
		return HealPass{}, ErrHealing
	}
	return r.pass, nil
}

// lacks says what the item lacks, "" if it is whole on every drive.
func (i healItem) lacks() string {
	if i.gone() {
		return ""
	}
	if i.Detail != "" {
		return i.Detail
	}
	for _, drive := range i.After.Drives {
		if drive.State != "ok" {
			return fmt.Sprintf("it is %s on drive %s", drive.State, drive.Endpoint)
		}
	}
	if len(i.After.Drives) == 0 {
		return "nothing is said of its drives"
	}
	return ""
}

// gone reports whether no drive has any of it, which is so where somebody removed it during
// the pass. The server calls that an error.
func (i healItem) gone() bool {
	for _, drive := range i.After.Drives {
		if drive.State != "missing" {
			return false
		}
	}
	return len(i.After.Drives) > 0
}

// name is the item for people.
func (i healItem) name() string {
	name := i.Bucket
	if i.Object != "" {
		name += "/" + i.Object
	}
	if i.VersionID != "" {
		name += " (version " + i.VersionID + ")"
	}
	return name
}
