package minio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal/words"
)

// Pass makes MinIO scan all data: it checks whether each drive has its part of each item, and
// restores what is missing. Only that verifies it: a server that has filled a new drive reports
// success even if it could not list the buckets or their objects, and it restores no more then.
//
// The list of a scan is cut short in the same way if drives do not answer for a moment, and MinIO
// does not report that. So another server then lists all objects, and every one of them must have
// been scanned.
type Pass struct {
	// At is the server that scans, By is another server of the same store, which lists.
	At, By Healer
	// Drives is how many drives there must be at least.
	Drives int
	// Began is called with the token of the scan right after it has started. After a crash, [Drain]
	// needs that token. An error ends the scan.
	Began func(token string) error
	// Progress is called about once a second. An error ends the scan.
	Progress func(Passed) error
}

// Passed is the progress of a scan. It has counts only.
type Passed struct {
	// Items counts what was scanned: versions of objects, buckets, and MinIO's own data. Repaired
	// counts those of which a drive had no part at first.
	Items, Repaired int
	// Lacking counts items of which a drive still has no part, Unseen objects that another server
	// lists and that were not scanned.
	Lacking, Unseen int
}

const (
	// askEvery is how often EKCO asks for the progress. The server pauses when it has 1000 items
	// that nobody has asked for.
	askEvery = time.Second
	// askFor is how long a server may leave that unanswered.
	askFor = 2 * time.Minute
	// confirmTime is how long after its end the server must still know the scan. A scan that was
	// stopped also reports its end, but the server forgets it within about a second.
	confirmTime = 5 * time.Second
	// writtenBefore is the age that an object must have at the start for the scan to have to find
	// it: clocks of servers may differ.
	writtenBefore = 30 * time.Second
)

// pass is a [Pass] in progress.
type pass struct {
	Pass
	begun  s3.HealBegun
	seen   *seen
	passed Passed
	drives int
	// last is the index of the last item. With mayMissItems set, items after it may have been lost.
	last         int64
	mayMissItems bool
	lacks        lacks
}

// Run scans and returns the progress. An error has a method Key that names its cause. Without an
// error everything was scanned, and every drive has its parts.
func (p Pass) Run(ctx context.Context) (Passed, error) {
	one := &pass{Pass: p, seen: newSeen(), lacks: lacks{of: map[string]int{}}}
	err := one.run(ctx)
	return one.passed, err
}

func (p *pass) run(ctx context.Context) (err error) {
	if err := p.checkDrives(ctx); err != nil {
		return err
	}
	buckets, err := p.By.Buckets(ctx)
	if err != nil {
		return explain(err)
	}
	if p.begun, err = p.At.BeginHeal(ctx); err != nil {
		return explain(err)
	}
	if err := p.Began(p.begun.Token); err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	if err := p.checkEnded(ctx); err != nil {
		return err
	}
	if err := p.checkListed(ctx, buckets); err != nil {
		return err
	}
	return p.lacks.err(p.passed)
}

// checkDrives returns an error unless all drives work.
func (p *pass) checkDrives(ctx context.Context) error {
	server, err := p.At.Server(ctx)
	if err != nil {
		return explain(err)
	}
	for _, drive := range server.Drives {
		if !drive.Works {
			return &UnprovenError{"drive", fmt.Sprintf("MinIO reports that the drive of %s does not work", cmp.Or(drive.Host, "one server"))}
		}
	}
	if p.drives = len(server.Drives); p.drives < p.Drives {
		return &UnprovenError{"drive", fmt.Sprintf("MinIO reports %s, want %d", words.Count(p.drives, "drive"), p.Drives)}
	}
	return nil
}

// follow collects what the server has scanned until it reports the end.
func (p *pass) follow(ctx context.Context) error {
	for {
		news, err := p.ask(ctx)
		if err != nil {
			return err
		}
		for _, item := range news.Items {
			if p.mayMissItems = false; item.Index != p.last+1 {
				return errAnswerLost
			}
			p.last = item.Index
			p.count(item)
		}
		switch {
		case news.Failed != "":
			return &UnprovenError{"failed", "MinIO did not check all objects: " + news.Failed}
		case news.Ended && p.mayMissItems:
			return errAnswerLost
		}
		if err := p.Progress(p.passed); err != nil || news.Ended {
			return err
		}
		if err := pause(ctx, askEvery); err != nil {
			return err
		}
	}
}

var errAnswerLost = &UnprovenError{"lost", "an answer was lost in which MinIO reported what it had checked"}

// ask asks until there is an answer. If a question or its answer is lost, items may be lost with
// it.
func (p *pass) ask(ctx context.Context) (s3.HealNews, error) {
	for began := time.Now(); ; {
		news, err := p.At.HealNews(ctx, p.begun.Token)
		if err == nil || final(err) || time.Since(began) >= askFor || ctx.Err() != nil {
			return news, explain(err)
		}
		p.mayMissItems = true
		if err := pause(ctx, askEvery); err != nil {
			return s3.HealNews{}, err
		}
	}
}

// checkEnded returns an error unless the server still knows the scan, as ended.
func (p *pass) checkEnded(ctx context.Context) error {
	if err := pause(ctx, confirmTime); err != nil {
		return err
	}
	news, err := p.ask(ctx)
	switch {
	case err != nil:
		return err
	case !news.Ended || len(news.Items) > 0:
		return &UnprovenError{"failed", "MinIO reported the end of the check, but continued it"}
	}
	return nil
}

// count counts an item.
func (p *pass) count(item s3.HealItem) {
	p.passed.Items++
	if gone(item) {
		return // if it exists after all, it is listed, and counts as unseen
	}
	p.seen.add(item.Kind, item.Bucket, item.Key, item.Version)
	of := item.Of
	if item.Kind == s3.HealedBucket {
		of = p.drives // MinIO reports only the drives that answered, and not how many there should be
	}
	if p.lacks.judge(item, of) {
		p.passed.Lacking++
	} else if slices.ContainsFunc(item.Before, func(d s3.DriveState) bool { return d.State != s3.DriveOK }) {
		p.passed.Repaired++
	}
}

// gone reports whether an item no longer exists because it was deleted during the scan. The server
// reports an error then, and no drive, or only drives without it.
func gone(item s3.HealItem) bool {
	has := slices.ContainsFunc(item.After, func(d s3.DriveState) bool { return d.State != s3.DriveMissing })
	return item.Detail != "" && !has && (len(item.After) > 0 || item.Of == 0)
}

// checkListed returns an error unless everything that another server lists, and that existed before the
// scan, was scanned.
func (p *pass) checkListed(ctx context.Context, before []string) error {
	buckets, err := p.By.Buckets(ctx)
	if err != nil {
		return explain(err)
	}
	example := ""
	unseen := func(what string) {
		p.passed.Unseen++
		example = cmp.Or(example, what)
	}
	for _, bucket := range before {
		switch {
		case !slices.Contains(buckets, bucket):
			buckets = append(buckets, bucket) // or it was deleted, which its list will show
		case !p.seen.has(s3.HealedBucket, bucket, "", ""):
			unseen("bucket " + bucket)
		}
	}
	since := p.begun.At.Add(-writtenBefore)
	for _, bucket := range buckets {
		for v, err := range p.By.Versions(ctx, bucket, "") {
			switch {
			case errors.Is(err, s3.ErrGone):
			case err != nil:
				return explain(err)
			case v.Modified.Before(since) && !p.seen.has(s3.HealedObject, bucket, v.Key, v.ID):
				unseen(named(bucket, v.Key, v.ID))
			}
		}
	}
	if p.passed.Unseen == 0 {
		return nil
	}
	return &UnprovenError{"unseen", fmt.Sprintf("MinIO did not check %s, such as %s; it checked %s",
		words.Count(p.passed.Unseen, "object"), example, words.Count(p.passed.Items, "other"))}
}

// lacks counts missing parts by drive.
type lacks struct {
	of map[string]int
	// example is one item with a missing part.
	example string
}

// maxDrives is how many drives are counted separately.
const maxDrives = 64

// judge reports whether a drive has no part of an item, and counts it.
func (l *lacks) judge(item s3.HealItem, of int) bool {
	var drives []string
	for _, drive := range item.After {
		if drive.State != s3.DriveOK {
			drives = append(drives, drive.Drive+" ("+drive.State+")")
		}
	}
	if len(drives) == 0 && len(item.After) >= max(of, 1) && item.Detail == "" {
		return false
	}
	if len(drives) == 0 {
		drives = []string{"a drive that MinIO does not name"}
	}
	for _, drive := range drives {
		if _, known := l.of[drive]; known || len(l.of) < maxDrives {
			l.of[drive]++
		}
	}
	if l.example == "" {
		l.example = named(item.Bucket, item.Key, item.Version)
		if item.Detail != "" {
			l.example += fmt.Sprintf(" (%.200s)", item.Detail)
		}
	}
	return true
}

// err names what is missing, or is nil.
func (l *lacks) err(passed Passed) error {
	if passed.Lacking == 0 {
		return nil
	}
	var drives []string
	for drive, n := range l.of {
		drives = append(drives, fmt.Sprintf("%d on %s", n, drive))
	}
	slices.Sort(drives)
	const most = 3
	if len(drives) > most {
		drives = append(drives[:most], words.Count(len(l.of)-most, "more drive"))
	}
	return &UnprovenError{"lacking", fmt.Sprintf("MinIO could not restore a part of %s: %s; one is %s",
		words.Count(passed.Lacking, "object"), strings.Join(drives, ", "), l.example)}
}

// named names an object in a message.
func named(bucket, key, version string) string {
	text := fmt.Sprintf("%q", strings.TrimSuffix(bucket+"/"+key, "/"))
	if version != "" && version != s3.NullVersion {
		text += " in version " + version
	}
	return text
}

// Drain waits until a scan ends whose EKCO was killed. The server starts no other scan before that,
// and does not end it until a client collects its results.
func Drain(ctx context.Context, at Healer, token string) error {
	p := &pass{Pass: Pass{At: at}, begun: s3.HealBegun{Token: token}}
	for {
		news, err := p.ask(ctx)
		if errors.Is(err, s3.ErrForgotten) || err == nil && news.Ended {
			return nil
		}
		if err != nil {
			return err
		}
		if err := pause(ctx, askEvery); err != nil {
			return err
		}
	}
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(span):
		return nil
	}
}

// UnprovenError is why EKCO has not verified that all drives have all data.
type UnprovenError struct{ About, Reason string }

// Error implements error.
func (e *UnprovenError) Error() string { return e.Reason }

// Key names the cause.
func (e *UnprovenError) Key() string { return e.About }

// final reports whether asking again would give the same answer.
func final(err error) bool {
	return errors.Is(err, s3.ErrForgotten) || errors.Is(err, s3.ErrDenied) || errors.Is(err, s3.ErrNotOffered)
}

// explain explains an error of a server.
func explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, s3.ErrDenied):
		return &explainedError{"credentials", "MinIO does not accept the credentials of Secret minio-credentials, which EKCO needs to check that all drives have all objects; correct them, or restart the replicas with them", err}
	case errors.Is(err, s3.ErrHealing):
		return &explainedError{"another", "another client runs a check of all objects, such as mc admin heal, and EKCO waits for it: " + err.Error() + "; it ends automatically, within a day even if that client has ended", err}
	case errors.Is(err, s3.ErrForgotten):
		return &explainedError{"forgotten", "MinIO no longer knows the check of all objects: the replica was restarted, or another client stopped the check", err}
	}
	return &explainedError{"answer", fmt.Sprintf("cannot check that all drives have all objects: %v", err), err}
}

// explainedError is an error with its explanation.
type explainedError struct {
	key, text string
	error
}

// Error implements error.
func (e *explainedError) Error() string { return e.text }

// Key names the cause.
func (e *explainedError) Key() string { return e.key }

// Unwrap returns the original error.
func (e *explainedError) Unwrap() error { return e.error }
