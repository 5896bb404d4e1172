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

// Pass makes MinIO scan all data: MinIO checks whether each drive has its part of each item, and restores missing
// parts. Only a scan verifies a new drive: a server that fills a new drive reports success even if it could not list
// the buckets or their objects, and then restores nothing more.
//
// A scan can also be incomplete: if drives do not answer for a moment, the scan misses objects, and MinIO does not
// report it. So after the scan another server lists all objects, and Pass checks that each of them was scanned.
type Pass struct {
	// Scanner is the server that scans. Lister is another server of the same store, which lists the objects.
	Scanner, Lister Healer
	// Drives is the minimum number of drives.
	Drives int
	// Began is called with the token of the scan right after the start. [ReadScanToEnd] needs the token after a crash. If
	// Began returns an error, Run ends.
	Began func(token string) error
	// Progress is called about once a second. If it returns an error, Run ends.
	Progress func(Passed) error
}

// Passed is the progress of a scan. It has counts only.
type Passed struct {
	// Items counts the scanned items: versions of objects, buckets, and MinIO's own data. Repaired counts the
	// items of which a drive had no part before the scan and has one now.
	Items, Repaired int
	// Lacking counts items of which a drive still has no part. Unseen counts objects that another server lists but
	// that were not scanned.
	Lacking, Unseen int
}

const (
	// askInterval is how often EKCO asks the MinIO server for its progress. It must be short, because the server pauses
	// when 1000 items wait to be collected.
	askInterval = time.Second
	// answerTimeout is the time without an answer after which Run fails.
	answerTimeout = 2 * time.Minute
	// confirmDelay is the time after the end of a scan at which the server must still know the scan. If another client
	// stopped the scan, the server also reports the end, but forgets the scan within about a second.
	confirmDelay = 5 * time.Second
	// minObjectAge is how old an object must be at the start of the scan to be missed if it was not scanned. It allows
	// for differences between the clocks of servers.
	minObjectAge = 30 * time.Second
)

// runningPass is a [Pass] in progress.
type runningPass struct {
	Pass
	begun  s3.HealBegun
	seen   *itemSet
	passed Passed
	drives int
	// last is the index of the last collected item. mayMissItems is set if items after it may have been lost.
	last         int64
	mayMissItems bool
	missing      missingParts
}

// Run scans all data and returns the progress. If it returns no error, every item was scanned and every drive has
// its parts. An error has a method Key that names its cause.
func (p Pass) Run(ctx context.Context) (Passed, error) {
	one := &runningPass{Pass: p, seen: newSeen(), missing: missingParts{countByDrive: map[string]int{}}}
	err := one.run(ctx)
	return one.passed, err
}

func (p *runningPass) run(ctx context.Context) (err error) {
	if err := p.checkDrives(ctx); err != nil {
		return err
	}
	buckets, err := p.Lister.Buckets(ctx)
	if err != nil {
		return explain(err)
	}
	if p.begun, err = p.Scanner.BeginHeal(ctx); err != nil {
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
	return p.missing.toError(p.passed)
}

// checkDrives returns an error unless all drives work.
func (p *runningPass) checkDrives(ctx context.Context) error {
	server, err := p.Scanner.Server(ctx)
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

// follow collects the scanned items until the server reports the end.
func (p *runningPass) follow(ctx context.Context) error {
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
			p.countItem(item)
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
		if err := pause(ctx, askInterval); err != nil {
			return err
		}
	}
}

var errAnswerLost = &UnprovenError{"lost", "an answer was lost in which MinIO reported what it had checked"}

// ask asks the server for scanned items until it answers. If a question or an answer is lost, its items may be lost.
func (p *runningPass) ask(ctx context.Context) (s3.HealNews, error) {
	for began := time.Now(); ; {
		news, err := p.Scanner.HealNews(ctx, p.begun.Token)
		if err == nil || final(err) || time.Since(began) >= answerTimeout || ctx.Err() != nil {
			return news, explain(err)
		}
		p.mayMissItems = true
		if err := pause(ctx, askInterval); err != nil {
			return s3.HealNews{}, err
		}
	}
}

// checkEnded returns an error unless the server still reports the scan as ended after confirmDelay.
func (p *runningPass) checkEnded(ctx context.Context) error {
	if err := pause(ctx, confirmDelay); err != nil {
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

// countItem counts an item.
func (p *runningPass) countItem(item s3.HealItem) {
	p.passed.Items++
	if isDeleted(item) {
		return // if it exists after all, another server lists it, and it counts as unseen
	}
	p.seen.add(item.Kind, item.Bucket, item.Key, item.Version)
	of := item.Of
	if item.Kind == s3.HealedBucket {
		of = p.drives // MinIO reports only the drives that answered, not the expected number
	}
	if p.missing.addIfMissing(item, of) {
		p.passed.Lacking++
	} else if slices.ContainsFunc(item.Before, func(d s3.DriveState) bool { return d.State != s3.DriveOK }) {
		p.passed.Repaired++
	}
}

// isDeleted reports whether an item was deleted during the scan. Then the server reports an error, and either no drives
// or only drives without the item.
func isDeleted(item s3.HealItem) bool {
	has := slices.ContainsFunc(item.After, func(d s3.DriveState) bool { return d.State != s3.DriveMissing })
	return item.Detail != "" && !has && (len(item.After) > 0 || item.Of == 0)
}

// checkListed returns an error unless each object that another server lists was scanned. It ignores objects that were
// modified after the start of the scan, or less than minObjectAge before.
func (p *runningPass) checkListed(ctx context.Context, before []string) error {
	buckets, err := p.Lister.Buckets(ctx)
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
			buckets = append(buckets, bucket) // listing it shows whether it was deleted
		case !p.seen.has(s3.HealedBucket, bucket, "", ""):
			unseen("bucket " + bucket)
		}
	}
	since := p.begun.At.Add(-minObjectAge)
	for _, bucket := range buckets {
		for v, err := range p.Lister.Versions(ctx, bucket, "") {
			switch {
			case errors.Is(err, s3.ErrGone):
			case err != nil:
				return explain(err)
			case v.Modified.Before(since) && !p.seen.has(s3.HealedObject, bucket, v.Key, v.ID):
				unseen(objectName(bucket, v.Key, v.ID))
			}
		}
	}
	if p.passed.Unseen == 0 {
		return nil
	}
	return &UnprovenError{"unseen", fmt.Sprintf("MinIO did not check %s, such as %s; it checked %s",
		words.Count(p.passed.Unseen, "object"), example, words.Count(p.passed.Items, "other"))}
}

// missingParts counts missing parts for each drive.
type missingParts struct {
	countByDrive map[string]int
	// example is one item with a missing part.
	example string
}

// maxDrives is the maximum number of drives that are counted separately.
const maxDrives = 64

// addIfMissing reports whether a drive lacks its part of an item, and counts the missing parts.
func (l *missingParts) addIfMissing(item s3.HealItem, of int) bool {
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
		if _, known := l.countByDrive[drive]; known || len(l.countByDrive) < maxDrives {
			l.countByDrive[drive]++
		}
	}
	if l.example == "" {
		l.example = objectName(item.Bucket, item.Key, item.Version)
		if item.Detail != "" {
			l.example += fmt.Sprintf(" (%.200s)", item.Detail)
		}
	}
	return true
}

// toError returns an error that names the missing parts, or nil.
func (l *missingParts) toError(passed Passed) error {
	if passed.Lacking == 0 {
		return nil
	}
	var drives []string
	for drive, n := range l.countByDrive {
		drives = append(drives, fmt.Sprintf("%d on %s", n, drive))
	}
	slices.Sort(drives)
	const most = 3
	if len(drives) > most {
		drives = append(drives[:most], words.Count(len(l.countByDrive)-most, "more drive"))
	}
	return &UnprovenError{"lacking", fmt.Sprintf("MinIO could not restore a part of %s: %s; one is %s",
		words.Count(passed.Lacking, "object"), strings.Join(drives, ", "), l.example)}
}

// objectName returns the name of an object for a message.
func objectName(bucket, key, version string) string {
	text := fmt.Sprintf("%q", strings.TrimSuffix(bucket+"/"+key, "/"))
	if version != "" && version != s3.NullVersion {
		text += " in version " + version
	}
	return text
}

// ReadScanToEnd collects the results of the scan with the token until the scan ends. EKCO calls it for a scan that it
// started before it was killed: the server starts no other scan before that scan ends, and the scan ends only if a
// client collects its results.
func ReadScanToEnd(ctx context.Context, at Healer, token string) error {
	p := &runningPass{Pass: Pass{Scanner: at}, begun: s3.HealBegun{Token: token}}
	for {
		news, err := p.ask(ctx)
		if errors.Is(err, s3.ErrForgotten) || err == nil && news.Ended {
			return nil
		}
		if err != nil {
			return err
		}
		if err := pause(ctx, askInterval); err != nil {
			return err
		}
	}
}

// pause waits for the time, or until the context ends.
func pause(ctx context.Context, span time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(span):
		return nil
	}
}

// UnprovenError is the reason why EKCO could not verify that all drives have all data.
type UnprovenError struct{ About, Reason string }

// Error implements error.
func (e *UnprovenError) Error() string { return e.Reason }

// Key names the cause.
func (e *UnprovenError) Key() string { return e.About }

// final reports whether asking again would give the same answer.
func final(err error) bool {
	return errors.Is(err, s3.ErrForgotten) || errors.Is(err, s3.ErrDenied) || errors.Is(err, s3.ErrNotOffered)
}

// explain adds a key and an explanation to an error of a server.
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

func (e *explainedError) Error() string { return e.text }

// Key names the cause.
func (e *explainedError) Key() string { return e.key }

// Unwrap returns the original error.
func (e *explainedError) Unwrap() error { return e.error }
