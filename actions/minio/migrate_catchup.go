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

// maxRounds is the maximum number of passes in one attempt to catch up.
const maxRounds = 10

// catchUp copies changes until a pass is short enough for the switch, and compares all data on both sides. The recorded
// time of an equal comparison is its proof.
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
	err = runWatched(ctx, func(ctx context.Context) (err error) {
		outputs, err = s.copyUntilSame(ctx, both, step)
		return err
	}, both.watchService(), watchPolicy(step))
	return outputs, asWait(err)
}

// copyUntilSame repeats passes until both sides have the same data.
func (s catchUp) copyUntilSame(ctx context.Context, both sides, step actions.StepContext) (json.RawMessage, error) {
	var known differencesByName
	found := journal.MinioCaughtUp{}
	for range maxRounds {
		lost, result, took, err := s.makePass(ctx, both, step)
		if errors.As(err, new(unnamedError)) {
			found.Versions, found.TooFast, found.TooFastSince = result.Seen, err.Error(), time.Now().UTC()
			return s.unfinishedError(found)
		}
		if err != nil {
			return nil, err
		}
		report, err := compareAll(ctx, both, step, replica.DefaultSample, result.Seen)
		if err != nil {
			return nil, err
		}
		now := namedDifferences(report, lost)
		if stays := known.remaining(now); len(stays) > 0 {
			return nil, fmt.Errorf("standalone MinIO and ha-minio still differ after another copy, although clients changed nothing: %s", strings.Join(stays, ", "))
		}
		found.Versions, found.Listed = result.Seen, journal.Duration(report.Listed)
		found.TooFast, found.TooFastSince = s.tooFastReason(result, took, report.Listed), time.Now().UTC()
		if found.TooFast != "" {
			known = now
			continue
		}
		found.TooFastSince = time.Time{}
		if len(now) == 0 || known != nil && !known.hasUnnamed() && !now.hasUnnamed() {
			return s.completeStep(ctx, both, found, report, lost)
		}
		known = now
	}
	return s.unfinishedError(found)
}

// unfinishedError returns an error with the reason why EKCO could not catch up.
func (catchUp) unfinishedError(found journal.MinioCaughtUp) (json.RawMessage, error) {
	if found.TooFast == "" {
		found.TooFast = fmt.Sprintf("standalone MinIO changes faster than EKCO can compare it: in each of %d comparisons more than %d of %d versions differed; the last one took %s",
			maxRounds, replica.MaxDifferences, found.Versions, time.Duration(found.Listed).Round(time.Second))
		found.TooFastSince = time.Now().UTC()
	}
	outputs, err := json.Marshal(found)
	return nil, errors.Join(err, &actions.UnfinishedError{Left: found.TooFast, Waits: true, Outputs: outputs})
}

// makePass makes one pass over all data. It starts with buckets, users and policies.
func (s catchUp) makePass(ctx context.Context, both sides, step actions.StepContext) (loss, replica.Result, time.Duration, error) {
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
	if err := both.listener.takeFailure(); err != nil {
		step.Log.Warn("EKCO missed events of standalone MinIO, so it may not know of all removals", "error", err)
	}
	result, err := replica.Pass(ctx, both.source, both.target, s.limitBandwidth(replica.Options{
		Progress: func(p replica.Progress) { step.Report(estimate.estimate(p)) }, Removed: both.mayRemove,
	}))
	if err == nil {
		both.listener.forgetBeforePass()
	}
	lost.versions = result.NotCarried.First
	if err == nil && result.NotCarried.Count > len(result.NotCarried.First) {
		err = unnamedError(result.NotCarried)
	}
	return lost, result, time.Since(began), err
}

// compareAll compares both sides. versions is the number of versions that the source had in the last pass.
func compareAll(ctx context.Context, both sides, step actions.StepContext, sample, versions int64) (replica.Report, error) {
	options := compareOptions(step, sample, versions)
	options.Removed = both.mayRemove
	return replica.Compare(ctx, both.source, both.target, options)
}

// compareOptions returns options for a comparison that reports its progress.
func compareOptions(step actions.StepContext, sample, versions int64) replica.CompareOptions {
	estimate := meter{began: time.Now(), total: versions}
	return replica.CompareOptions{
		Sample: sample,
		Progress: func(versions int64) {
			now := estimate.estimate(replica.Progress{Seen: versions})
			now.Missing = "EKCO compares both sides"
			step.Report(now)
		},
	}
}

// unnamedError reports that more versions cannot be copied than EKCO can name. A person could not know what the switch
// would lose.
type unnamedError replica.Names

func (e unnamedError) Error() string {
	return fmt.Sprintf("%d versions cannot be carried over, but EKCO names at most %d; the first are %s; ask their owner to store them without an encryption key of the client, or to remove them",
		e.Count, len(e.First), strings.Join(e.First[:3], ", "))
}

// tooFastReason returns a reason if copying the changes of one pass takes longer than the switch may take, or "". It
// subtracts listed, the time to list the versions, because a slow list is no sign of fast changes.
func (m Migration) tooFastReason(result replica.Result, took, listed time.Duration) string {
	limit := m.limit(result.Seen, listed)
	if result.Changes() == 0 || took-listed <= limit {
		return ""
	}
	return fmt.Sprintf("standalone MinIO changes faster than EKCO can copy: a pass over %d versions took %s (%s without changes), and the switch may take %s; it copied %d changes (%.1f per second) of %d bytes",
		result.Seen, took.Round(time.Second), listed.Round(time.Second), limit.Round(time.Second), result.Changes(), float64(result.Changes())/max(took.Seconds(), 0.001), result.CopiedBytes)
}

// completeStep completes the step after it has also tried the settings that act automatically.
func (s catchUp) completeStep(ctx context.Context, both sides, found journal.MinioCaughtUp, report replica.Report, lost loss) (json.RawMessage, error) {
	keeps := actingSettings{of: map[string]map[string]string{}}
	refused, err := both.rehearseSettings(ctx, &keeps)
	if err != nil {
		return nil, err
	}
	found.Acting, found.Untold = keeps.of, keeps.skipped
	lost.settings = append(lost.settings, refused...)
	found.VerifiedAt, found.Sampled, found.NotCarried = time.Now().UTC(), report.SampledBytes, lost.names()
	found.TooFast, found.TooFastSince = "", time.Time{}
	return json.Marshal(found)
}

// differencesByName maps the name of each difference to the state of the data that EKCO saw.
type differencesByName map[string]string

// unnamedDifferences is the key for differences that the report does not name.
const unnamedDifferences = "more objects than EKCO names"

// hasUnnamed reports whether the report did not name some differences.
func (s differencesByName) hasUnnamed() bool { return s[unnamedDifferences] != "" }

// remaining returns the names of differences that remain although the source did not change the data. Other differences
// are clients' changes: they were equal once, or their state changed.
func (s differencesByName) remaining(now differencesByName) (stays []string) {
	for name, state := range now {
		if was, is := s[name]; is && was == state && name != unnamedDifferences {
			stays = append(stays, name)
		}
	}
	slices.Sort(stays)
	return stays[:min(len(stays), 10)]
}

// namedDifferences returns the differences of a report, except data that is known to be lost.
func namedDifferences(report replica.Report, lost loss) differencesByName {
	all := differencesByName{}
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
		all[unnamedDifferences] = "differ"
	}
	for _, d := range report.Differences {
		if slices.Contains(lost.versions, d.Name) {
			continue
		}
		all[fmt.Sprintf("%s %v", d.Name, d.Aspects)] = string(d.State[:])
	}
	return all
}
