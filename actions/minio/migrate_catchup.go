package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// maxRounds is the maximum number of passes of an attempt to catch up.
const maxRounds = 10

// catchUp copies changes until a pass is short enough for the switch, and compares everything on both sides. Its proof
// is the time at which both were the same.
type catchUp struct{ *migrator }

func (s catchUp) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var found journal.MinioCaughtUp
	_, err := step.Output(step.Planned.ID, &found)
	return actions.Proof{
		Done: !found.VerifiedAt.IsZero(), Missing: "EKCO has not verified that both sides are the same",
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

func (s catchUp) Do(ctx context.Context, step actions.StepContext) (outputs json.RawMessage, err error) {
	both, err := s.open(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	defer both.close()
	err = watched(ctx, func(ctx context.Context) (err error) {
		outputs, err = s.until(ctx, both, step)
		return err
	}, both.watchService(), watchPolicy(step))
	return outputs, waiting(err)
}

// until makes rounds until both sides are the same.
func (s catchUp) until(ctx context.Context, both sides, step actions.StepContext) (json.RawMessage, error) {
	var known suspects
	found := journal.MinioCaughtUp{}
	for range maxRounds {
		lost, result, took, err := s.round(ctx, both, step)
		if errors.As(err, new(unnamedError)) {
			found.Versions, found.TooFast, found.TooFastSince = result.Seen, err.Error(), time.Now().UTC()
			return s.unfinished(found)
		}
		if err != nil {
			return nil, err
		}
		report, err := compareAll(ctx, both, step, replica.DefaultSample, result.Seen)
		if err != nil {
			return nil, err
		}
		now := suspectsOf(report, lost)
		if stays := known.stay(now); len(stays) > 0 {
			return nil, fmt.Errorf("standalone MinIO and ha-minio still differ after another copy, although clients changed nothing: %s", strings.Join(stays, ", "))
		}
		found.Versions, found.Listed = result.Seen, journal.Duration(report.Listed)
		found.TooFast, found.TooFastSince = s.tooFast(result, took, report.Listed), time.Now().UTC()
		if found.TooFast != "" {
			known = now
			continue
		}
		found.TooFastSince = time.Time{}
		if len(now) == 0 || known != nil && !known.unclear() && !now.unclear() {
			return s.verified(ctx, both, found, report, lost)
		}
		known = now
	}
	return s.unfinished(found)
}

// unfinished returns why EKCO could not catch up.
func (catchUp) unfinished(found journal.MinioCaughtUp) (json.RawMessage, error) {
	if found.TooFast == "" {
		found.TooFast = fmt.Sprintf("standalone MinIO changes faster than EKCO can compare it: in each of %d comparisons more than %d of %d versions differed; the last one took %s",
			maxRounds, replica.MaxDifferences, found.Versions, time.Duration(found.Listed).Round(time.Second))
		found.TooFastSince = time.Now().UTC()
	}
	outputs, err := json.Marshal(found)
	return nil, errors.Join(err, &actions.UnfinishedError{Left: found.TooFast, Waits: true, Outputs: outputs})
}

// round makes one pass over everything, buckets, users and policies first.
func (s catchUp) round(ctx context.Context, both sides, step actions.StepContext) (loss, replica.Result, time.Duration, error) {
	began := time.Now()
	lost, err := both.prepare(ctx)
	if err != nil {
		return loss{}, replica.Result{}, 0, err
	}
	all, err := outputOf[journal.MinioPrepared](step.Action, journal.StepPrepareMinio)
	if err != nil {
		return loss{}, replica.Result{}, 0, err
	}
	estimate := meter{began: began, total: all.Versions, bytes: all.Bytes}
	if err := both.listener.failure(); err != nil {
		step.Log.Warn("EKCO missed events of standalone MinIO, so it may not know of all removals", "error", err)
	}
	result, err := replica.Pass(ctx, both.source, both.target, s.limited(replica.Options{
		Progress: func(p replica.Progress) { step.Report(estimate.progress(p)) }, Removed: both.removed,
	}))
	if err == nil {
		both.listener.passed()
	}
	lost.versions = result.NotCarried.First
	if err == nil && result.NotCarried.Count > len(result.NotCarried.First) {
		err = unnamedError(result.NotCarried)
	}
	return lost, result, time.Since(began), err
}

// compareAll compares both sides; the source had so many versions a moment ago.
func compareAll(ctx context.Context, both sides, step actions.StepContext, sample, versions int64) (replica.Report, error) {
	options := comparing(step, sample, versions)
	options.Removed = both.removed
	return replica.Compare(ctx, both.source, both.target, options)
}

// comparing are the options of a comparison that reports its progress.
func comparing(step actions.StepContext, sample, versions int64) replica.CompareOptions {
	estimate := meter{began: time.Now(), total: versions}
	return replica.CompareOptions{
		Sample: sample,
		Progress: func(versions int64) {
			now := estimate.progress(replica.Progress{Seen: versions})
			now.Missing = "EKCO compares both sides"
			step.Report(now)
		},
	}
}

// unnamedError says that more versions cannot be carried over than EKCO names: a person could not know what would be
// lost.
type unnamedError replica.Names

func (e unnamedError) Error() string {
	return fmt.Sprintf("%d versions cannot be carried over, but EKCO names at most %d; the first are %s; ask their owner to store them without an encryption key of the client, or to remove them",
		e.Count, len(e.First), strings.Join(e.First[:3], ", "))
}

// tooFast returns at which rate the source changes if copying the changes of one pass takes longer than the switch may,
// "" if not. A source that is slow to list need not change fast: listed is how long listing takes.
func (m Migration) tooFast(result replica.Result, took, listed time.Duration) string {
	limit := m.limit(result.Seen, listed)
	if result.Changes() == 0 || took-listed <= limit {
		return ""
	}
	return fmt.Sprintf("standalone MinIO changes faster than EKCO can copy: a pass over %d versions took %s (%s without changes), and the switch may take %s; it copied %d changes (%.1f per second) of %d bytes",
		result.Seen, took.Round(time.Second), listed.Round(time.Second), limit.Round(time.Second), result.Changes(), float64(result.Changes())/max(took.Seconds(), 0.001), result.CopiedBytes)
}

// verified ends the step once the settings that act automatically were tried, too.
func (s catchUp) verified(ctx context.Context, both sides, found journal.MinioCaughtUp, report replica.Report, lost loss) (json.RawMessage, error) {
	keeps := acting{of: map[string]map[string]string{}}
	refused, err := both.rehearse(ctx, &keeps)
	if err != nil {
		return nil, err
	}
	found.Acting, found.Untold = keeps.of, keeps.skipped
	lost.settings = append(lost.settings, refused...)
	found.VerifiedAt, found.Sampled, found.NotCarried = time.Now().UTC(), report.SampledBytes, lost.names()
	found.TooFast, found.TooFastSince = "", time.Time{}
	return json.Marshal(found)
}

// suspects are differences by name, with the state that was seen.
type suspects map[string]string

// many is the name of further differences.
const many = "more objects than EKCO names"

// unclear reports whether some differences have no name.
func (s suspects) unclear() bool { return s[many] != "" }

// stay names what still differs although the source has not changed it. All else was the same once, or differs in
// another state: clients changed it.
func (s suspects) stay(now suspects) (stays []string) {
	for name, state := range now {
		if was, is := s[name]; is && was == state && name != many {
			stays = append(stays, name)
		}
	}
	slices.Sort(stays)
	return stays[:min(len(stays), 10)]
}

// suspectsOf returns the differences of a report that are not known to be lost.
func suspectsOf(report replica.Report, lost loss) suspects {
	all := suspects{}
	for _, bucket := range report.Buckets {
		all["bucket "+bucket] = "on one side only"
	}
	for bucket, names := range report.Settings {
		for _, name := range names {
			if !replica.Acts(name) && !lost.hasSetting(bucket, name) {
				all[fmt.Sprintf("the %s of bucket %s", name, bucket)] = "differs"
			}
		}
	}
	if report.Count > len(report.Differences) {
		all[many] = "differ"
	}
	for _, d := range report.Differences {
		if slices.Contains(lost.versions, d.Name) {
			continue
		}
		all[fmt.Sprintf("%s %v", d.Name, d.Aspects)] = string(d.State[:])
	}
	return all
}
