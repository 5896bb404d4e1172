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

// Pass has MinIO look whether each drive has its part of everything, and repair where one has
// not. It is the only proof of that: a server that has filled a new drive says that it is
// done also where it could not list the buckets, or their objects, and fills no more then.
//
// What a pass lists is cut short in the same way where drives do not answer for a moment, and
// nobody says so. That is why another server is asked for a list afterwards, of which
// everything must have been looked at.
type Pass struct {
	// At is the server that makes the pass, By another one of the same store.
	At, By Healer
	// Drives is how many there are at least.
	Drives int
	// Began is told the token of the pass before it goes on, with which [Drain] can be asked
	// for after a crash. An error ends the pass.
	Began func(token string) error
	// Progress is told how far the pass is, each second or so. An error ends the pass.
	Progress func(Passed) error
}

// Passed is how far a pass has come. Only counts are kept.
type Passed struct {
	// Items were looked at: versions of objects, buckets, and what MinIO keeps of itself.
	// Of so many some drive lacked its part at first.
	Items, Repaired int
	// Lacking are those of which a drive lacks its part still, and Unseen are those that
	// another server lists and that were not looked at.
	Lacking, Unseen int
}

const (
	// askEvery is how often a server is asked how far it is. It waits with 1000 items that
	// nobody has asked for.
	askEvery = time.Second
	// askFor is how long a server may leave that unanswered.
	askFor = 2 * time.Minute
	// confirmTime is how long after its end the server must still know the pass. A pass that was
	// stopped also reports its end, but the server forgets it within about a second.
	confirmTime = 5 * time.Second
	// writtenBefore is how long before a pass something must have been written for the pass
	// to have to look at it. Clocks of servers may differ.
	writtenBefore = 30 * time.Second
)

// pass is a [Pass] that is under way.
type pass struct {
	Pass
	begun  s3.HealBegun
	seen   *seen
	passed Passed
	drives int
	// last is the index of the last item. With unsure set, items after it may have been lost.
	last   int64
	unsure bool
	lacks  lacks
}

// Run makes the pass and returns how far it came. An error has a method Key that names what
// it is about; without one everything was looked at, and no drive lacks anything.
func (p Pass) Run(ctx context.Context) (Passed, error) {
	one := &pass{Pass: p, seen: newSeen(), lacks: lacks{of: map[string]int{}}}
	err := one.run(ctx)
	return one.passed, err
}

func (p *pass) run(ctx context.Context) (err error) {
	if err := p.works(ctx); err != nil {
		return err
	}
	buckets, err := p.By.Buckets(ctx)
	if err != nil {
		return asked(err)
	}
	if p.begun, err = p.At.BeginHeal(ctx); err != nil {
		return asked(err)
	}
	if err := p.Began(p.begun.Token); err != nil {
		return err
	}
	if err := p.follow(ctx); err != nil {
		return err
	}
	if err := p.lasts(ctx); err != nil {
		return err
	}
	if err := p.covers(ctx, buckets); err != nil {
		return err
	}
	return p.lacks.err(p.passed)
}

// works returns an error unless all drives are known to work.
func (p *pass) works(ctx context.Context) error {
	server, err := p.At.Server(ctx)
	if err != nil {
		return asked(err)
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

// follow takes what the server has looked at until it says that it has ended.
func (p *pass) follow(ctx context.Context) error {
	for {
		news, err := p.ask(ctx)
		if err != nil {
			return err
		}
		for _, item := range news.Items {
			if p.unsure = false; item.Index != p.last+1 {
				return errItemsLost
			}
			p.last = item.Index
			p.take(item)
		}
		switch {
		case news.Failed != "":
			return &UnprovenError{"failed", "MinIO did not check all objects: " + news.Failed}
		case news.Ended && p.unsure:
			return errItemsLost
		}
		if err := p.Progress(p.passed); err != nil || news.Ended {
			return err
		}
		if err := pause(ctx, askEvery); err != nil {
			return err
		}
	}
}

var errItemsLost = &UnprovenError{"lost", "an answer was lost in which MinIO reported what it had checked"}

// ask asks until there is an answer. With a question that is not answered, or whose answer
// does not arrive, items may be lost.
func (p *pass) ask(ctx context.Context) (s3.HealNews, error) {
	for began := time.Now(); ; {
		news, err := p.At.HealNews(ctx, p.begun.Token)
		if err == nil || final(err) || time.Since(began) >= askFor || ctx.Err() != nil {
			return news, asked(err)
		}
		p.unsure = true
		if err := pause(ctx, askEvery); err != nil {
			return s3.HealNews{}, err
		}
	}
}

// lasts returns an error unless the pass is still known as one that has ended.
func (p *pass) lasts(ctx context.Context) error {
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

// take counts an item.
func (p *pass) take(item s3.HealItem) {
	p.passed.Items++
	if gone(item) {
		return // if it is there all the same, it is listed, and was not seen
	}
	p.seen.add(item.Kind, item.Bucket, item.Key, item.Version)
	of := item.Of
	if item.Kind == s3.HealedBucket {
		of = p.drives // it is told of those that answered, without how many there are
	}
	if p.lacks.judge(item, of) {
		p.passed.Lacking++
	} else if slices.ContainsFunc(item.Before, func(d s3.DriveState) bool { return d.State != s3.DriveOK }) {
		p.passed.Repaired++
	}
}

// gone reports whether there is no such thing any more, as where it was deleted under way. The
// server calls that an error, and tells of no drive, or of none that has any of it.
func gone(item s3.HealItem) bool {
	has := slices.ContainsFunc(item.After, func(d s3.DriveState) bool { return d.State != s3.DriveMissing })
	return item.Detail != "" && !has && (len(item.After) > 0 || item.Of == 0)
}

// covers returns an error unless all that another server lists was looked at: what is there
// since before the pass.
func (p *pass) covers(ctx context.Context, before []string) error {
	buckets, err := p.By.Buckets(ctx)
	if err != nil {
		return asked(err)
	}
	example := ""
	unseen := func(what string) {
		p.passed.Unseen++
		example = cmp.Or(example, what)
	}
	for _, bucket := range before {
		switch {
		case !slices.Contains(buckets, bucket):
			buckets = append(buckets, bucket) // or it was deleted, and its list says so
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
				return asked(err)
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

// lacks is of what drives lack their part, by drive.
type lacks struct {
	of map[string]int
	// example is one of them.
	example string
}

// mostDrives is how many drives are told apart.
const mostDrives = 64

// judge reports whether an item lacks something, and counts it.
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
		if _, known := l.of[drive]; known || len(l.of) < mostDrives {
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

// err says for people what is lacking, nil if nothing is.
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

// named is an object for people.
func named(bucket, key, version string) string {
	text := fmt.Sprintf("%q", strings.TrimSuffix(bucket+"/"+key, "/"))
	if version != "" && version != s3.NullVersion {
		text += " in version " + version
	}
	return text
}

// Drain takes what is left of a pass that an EKCO began which was killed: the server makes no
// other one before it has come to its end, for which it waits for somebody to ask.
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

// UnprovenError says why it is not known that all drives have all that they should.
type UnprovenError struct{ About, Reason string }

// Error implements error.
func (e *UnprovenError) Error() string { return e.Reason }

// Key names what it is about.
func (e *UnprovenError) Key() string { return e.About }

// final reports whether the same question would be answered so again.
func final(err error) bool {
	return errors.Is(err, s3.ErrForgotten) || errors.Is(err, s3.ErrDenied) || errors.Is(err, s3.ErrNotOffered)
}

// asked says what an answer means for who looks after MinIO.
func asked(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, s3.ErrDenied):
		return &askedError{"credentials", "MinIO does not accept the credentials of Secret minio-credentials, which EKCO needs to check that all drives have all objects; correct them, or restart the replicas with them", err}
	case errors.Is(err, s3.ErrHealing):
		return &askedError{"another", "another client runs a check of all objects, such as mc admin heal, and EKCO waits for it: " + err.Error() + "; it ends automatically, within a day even if that client has ended", err}
	case errors.Is(err, s3.ErrForgotten):
		return &askedError{"forgotten", "MinIO no longer knows the check of all objects: the replica was restarted, or another client stopped the check", err}
	}
	return &askedError{"answer", fmt.Sprintf("cannot check that all drives have all objects: %v", err), err}
}

// askedError is an answer with what it means.
type askedError struct {
	key, text string
	error
}

// Error implements error.
func (e *askedError) Error() string { return e.text }

// Key names what it is about.
func (e *askedError) Key() string { return e.key }

// Unwrap returns the answer.
func (e *askedError) Unwrap() error { return e.error }
