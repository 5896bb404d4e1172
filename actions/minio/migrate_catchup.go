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
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// rounds is how many passes an attempt to catch up makes at most.
const rounds = 10

// catchUp copies what changed meanwhile until a pass is short enough for the switch, and
// looks at everything on both sides. Its proof is the time at which all was the same.
type catchUp struct{ *migrator }

func (s catchUp) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var found journal.MinioCaughtUp
	_, err := step.Output(step.Planned.ID, &found)
	return actions.Proof{
		Done: !found.VerifiedAt.IsZero(), Missing: "not all is known to be the same on both sides",
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

func (s catchUp) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	both, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer both.close()
	var known suspects
	found := journal.MinioCaughtUp{}
	for range rounds {
		lost, result, took, err := s.round(ctx, both, step)
		if err != nil {
			return nil, err
		}
		found.Versions = result.Seen
		if limit := s.limit(result.Seen); took > limit {
			found.TooFast, found.TooFastSince = tooFast(result, took, limit), time.Now().UTC()
			continue
		}
		report, err := replica.Compare(ctx, both.source, both.target, replica.DefaultSample)
		if err != nil {
			return nil, err
		}
		now, err := both.suspects(ctx, report, lost)
		if err != nil {
			return nil, err
		}
		if stays := known.stay(now); len(stays) > 0 {
			return nil, fmt.Errorf("the same on both sides should be %s, and it is not, although it was copied again and did not change", strings.Join(stays, ", "))
		}
		if len(now) == 0 || known != nil && !known.unclear() && !now.unclear() {
			return s.verified(ctx, both, found, report, lost)
		}
		known = now
		found.TooFast, found.TooFastSince = "", time.Time{}
	}
	return s.unfinished(found)
}

// unfinished says why it could not be caught up with.
func (catchUp) unfinished(found journal.MinioCaughtUp) (json.RawMessage, error) {
	if found.TooFast == "" {
		found.TooFast, found.TooFastSince = "each time more than a hundred objects of the single MinIO change while both sides are compared", time.Now().UTC()
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
	told := meter{began: began}
	result, err := replica.Pass(ctx, both.source, both.target, s.limited(replica.Options{
		Progress: func(p replica.Progress) { step.Report(told.progress(p)) },
	}))
	lost.versions = result.NotCarried.First
	if err == nil && result.NotCarried.Count > len(result.NotCarried.First) {
		err = fmt.Errorf("%d versions cannot be carried over, more than are named; the first are %s", result.NotCarried.Count, strings.Join(result.NotCarried.First[:3], ", "))
	}
	return lost, result, time.Since(began), err
}

// tooFast says at which rates the source changes.
func tooFast(result replica.Result, took, limit time.Duration) string {
	seconds := max(took.Seconds(), 0.001)
	return fmt.Sprintf("the single MinIO changes faster than it can be caught up with: a pass over %d versions took %s, of which the switch may take %s, and carried %d changes (%.1f in a second) of %d bytes",
		result.Seen, took.Round(time.Second), limit, result.Changes(), float64(result.Changes())/seconds, result.CopiedBytes)
}

// verified ends it, when also what acts by itself was tried.
func (s catchUp) verified(ctx context.Context, both sides, found journal.MinioCaughtUp, report replica.Report, lost loss) (json.RawMessage, error) {
	refused, err := both.rehearse(ctx)
	if err != nil {
		return nil, err
	}
	lost.settings = append(lost.settings, refused...)
	found.VerifiedAt, found.Sampled, found.NotCarried = time.Now().UTC(), report.SampledBytes, lost.names()
	found.TooFast, found.TooFastSince = "", time.Time{}
	return json.Marshal(found)
}

// suspects are what differs, by name, with what the source had of it when that was seen.
type suspects map[string]string

// many is the name of what is not told apart.
const many = "more than a hundred objects"

// unclear reports whether not all of them are known.
func (s suspects) unclear() bool { return s[many] != "" }

// stay names what differs still though the source has not changed it. What is among neither
// was once the same, or is another now: it changed meanwhile.
func (s suspects) stay(now suspects) (stays []string) {
	for name, state := range now {
		if was, is := s[name]; is && was == state && name != many {
			stays = append(stays, name)
		}
	}
	slices.Sort(stays)
	return stays[:min(len(stays), 10)]
}

// suspects takes from a report what is not known to be lost.
func (s sides) suspects(ctx context.Context, report replica.Report, lost loss) (suspects, error) {
	all := suspects{}
	for _, bucket := range report.Buckets {
		all["bucket "+bucket] = "on one side alone"
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
		if slices.Contains(lost.versions, d.Bucket+"/"+d.Key+" ("+d.Version+")") {
			continue
		}
		state, err := s.stateOf(ctx, d.Bucket, d.Key)
		if err != nil {
			return nil, err
		}
		all[fmt.Sprintf("object %s/%s (%s, %v)", d.Bucket, d.Key, d.Version, d.Aspects)] = state
	}
	return all, nil
}

// stateOf is what the source has of an object.
func (s sides) stateOf(ctx context.Context, bucket, key string) (string, error) {
	var state strings.Builder
	for v, err := range s.source.Versions(ctx, bucket, before(key)) {
		switch {
		case errors.Is(err, s3.ErrGone):
			return "gone", nil
		case err != nil:
			return "", err
		case v.Key == key:
			fmt.Fprintf(&state, "%s %s %s %t;", v.ID, v.ETag, v.Modified.Format(time.RFC3339Nano), v.DeleteMarker)
			if a := v.Attributes; a != nil {
				fmt.Fprint(&state, a.Headers, a.Tags, a.Retention, a.LegalHold)
			}
		case v.Key > key:
			return state.String(), nil
		}
	}
	return state.String(), nil
}

// before is a key after which a list comes to this one soon.
func before(key string) string {
	if key == "" {
		return ""
	}
	runes := []rune(key)
	return string(runes[:len(runes)-1])
}
