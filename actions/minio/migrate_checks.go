package minio

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The preflights of a migration, besides [MinioHealthy].
const (
	// MinioStillToMigrate: both are those that were planned for, and the Service leads to
	// the single one.
	MinioStillToMigrate = "MinioStillToMigrate"
	// MinioSourceRuns: a pod of the single one serves.
	MinioSourceRuns = "MinioSourceRuns"
	// MinioBothAnswer: both accept the credentials, and tell their versions.
	MinioBothAnswer = "MinioBothAnswer"
	// MinioRoom: the highly available one has room for all. It may be forced.
	MinioRoom = "MinioRoom"
	// MinioCarriedOver puts on record what cannot be carried over.
	MinioCarriedOver = "MinioCarriedOver"
	// MinioSourceCalm: the single one was not found to change too fast just now.
	MinioSourceCalm = "MinioSourceCalm"
	// MinioSuccessor: another pod can take the place of the one that serves. It may be
	// forced.
	MinioSuccessor = "MinioSuccessor"
	// MinioTries: the switch was not tried in vain just now, nor too often.
	MinioTries = "MinioTries"
	// MinioKeptLongEnough: the highly available one has served for long enough.
	MinioKeptLongEnough = "MinioKeptLongEnough"
	// MinioStillServed: it serves.
	MinioStillServed = "MinioStillServed"
)

// The keys of what may be forced.
const (
	keyRoom      = "room"
	keySuccessor = "successor"
)

const (
	// triesRest is how long the switch rests after it was tried in vain, of which tries
	// are made.
	triesRest = 5 * time.Minute
	tries     = 3
	// calmRest is how long a source is left that changes too fast.
	calmRest = 10 * time.Minute
)

func (m *migrator) preflights() map[string]actions.Preflight {
	all := map[string]actions.Preflight{MinioHealthy: healthy(m.api)}
	for name, check := range map[string]actions.PreflightFunc{
		MinioStillToMigrate: m.stillToMigrate, MinioSourceRuns: m.sourceRuns, MinioBothAnswer: m.bothAnswer, MinioRoom: m.room,
		MinioCarriedOver: carriedOver, MinioSourceCalm: sourceCalm, MinioSuccessor: m.mayBeReplaced, MinioTries: tried,
		MinioKeptLongEnough: m.keptLongEnough, MinioStillServed: m.stillServed,
	} {
		all[name] = check
	}
	return all
}

func (m *migrator) stillToMigrate(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	shall, err := shallOf(record)
	if err != nil {
		return actions.Hold(err.Error()).About("facts")
	}
	live, err := m.api.Read(ctx)
	if verdict := judge(record, live, err); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	switch {
	case live.Deployment != shall.Deployment:
		return actions.Abandon("Deployment minio is gone, or another one").About("deployment")
	case live.Service == journal.MinioServiceSingle:
		return actions.Pass()
	case live.Service == journal.MinioServiceHA:
		return actions.Abandon("Service minio leads to ha-minio already, so that nothing is copied there any more").About("switched")
	case live.Service == journal.MinioServiceDisabled:
		return actions.Abandon("Service minio leads nowhere, and this is not what the migration has come to: it is repaired first").About("disabled")
	}
	return actions.Hold(fmt.Sprintf("Service minio leads to %s, or is gone; EKCO goes on when it leads to the single MinIO", live.Service)).About("service")
}

func (m *migrator) sourceRuns(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
	single, err := m.api.Single(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	if _, serves := single.Serving(); !serves {
		return actions.Hold(noSourceError{single.Lacks()}.Error()).About("source")
	}
	return actions.Pass()
}

func (m *migrator) bothAnswer(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
	both, err := m.open(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	defer both.close()
	var versions [2]string
	for i, store := range []interface {
		Server(ctx context.Context) (s3.Server, error)
	}{both.source, both.target} {
		side := []string{"the single MinIO", "the highly available MinIO"}[i]
		server, err := store.Server(ctx)
		switch {
		case errors.Is(err, s3.ErrDenied):
			return actions.Hold(side + " does not accept the credentials of Secret minio-credentials; correct those, or restart it with them").About("credentials")
		case err != nil:
			return actions.Hold(fmt.Sprintf("%s does not answer: %v", side, err)).About("answer")
		}
		versions[i] = server.Version
	}
	return actions.PassBecause(fmt.Sprintf("the single MinIO has version %s, the highly available one %s", versions[0], versions[1])).About("versions")
}

// room compares what is left to copy with what fits, of which local volumes know only a
// nominal part.
func (m *migrator) room(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass() // nothing was looked at
	}
	all, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	done, err := outputOf[journal.MinioCopied](record, journal.StepCopyMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	both, err := m.open(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	defer both.close()
	server, err := both.target.Server(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	need := max(all.Bytes-done.Bytes, 0)
	if uint64(need) <= server.Free || record.HasForced(MinioRoom, keyRoom) {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("the highly available MinIO has room for %s, and %s are to be copied; give its volumes more, or go past this with \"ekco retry --force %s\" where they can grow",
		size(server.Free), size(uint64(need)), record.ID)).About(keyRoom)
}

// size is a number of bytes for people.
func size(bytes uint64) string {
	if bytes < 1<<20 {
		return words.Count(bytes, "byte")
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}

// notCarried returns all that is known not to be carried over.
func notCarried(record journal.ActionRecord) (all []string, err error) {
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil {
		return nil, err
	}
	copied, err := outputOf[journal.MinioCopied](record, journal.StepCopyMinio)
	if err != nil {
		return nil, err
	}
	caught, err := outputOf[journal.MinioCaughtUp](record, journal.StepCatchUpMinio)
	if err != nil {
		return nil, err
	}
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return nil, err
	}
	all = slices.Concat(prepared.NotCarried, copied.NotCarried, caught.NotCarried, cut.NotCarried)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// carriedOver passes, and says what is lost. That is put on record each time that it is
// something else.
func carriedOver(_ context.Context, record journal.ActionRecord) actions.Verdict {
	names, err := notCarried(record)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if len(names) == 0 {
		return actions.Pass()
	}
	text := strings.Join(names, "; ")
	sum := sha256.Sum256([]byte(text))
	return actions.PassBecause("not everything can be carried over: " + text).About(hex.EncodeToString(sum[:8]))
}

func sourceCalm(_ context.Context, record journal.ActionRecord) actions.Verdict {
	found, err := outputOf[journal.MinioCaughtUp](record, journal.StepCatchUpMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if found.TooFast == "" || time.Since(found.TooFastSince) >= calmRest {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("%s; it is tried again at %s", found.TooFast, words.Stamp(found.TooFastSince.Add(calmRest)))).About("fast")
}

// mayBeReplaced holds where writers could be cut off only by an outage without end.
func (m *migrator) mayBeReplaced(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.HasForced(MinioSuccessor, keySuccessor) {
		return actions.Pass()
	}
	single, err := m.api.Single(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	pod, serves := single.Serving()
	lacks := single.Lacks()
	if serves {
		if lacks, err = m.api.Successor(ctx, pod); err != nil {
			return actions.Hold(err.Error()).About("unread")
		}
		if lacks == "" {
			return actions.Pass()
		}
	}
	caught, err := outputOf[journal.MinioCaughtUp](record, journal.StepCatchUpMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	return actions.Hold(fmt.Sprintf("clients are cut off by replacing the pod of the single MinIO, and no other would start in its place: %s; "+
		"all was the same on both sides at %s; EKCO goes on when another pod can start; \"ekco retry --force %s\" switches without that, and what was written since may be lost",
		lacks, words.Stamp(caught.VerifiedAt), record.ID)).About(keySuccessor)
}

// tried rests between tries, and holds after the last.
func tried(_ context.Context, record journal.ActionRecord) actions.Verdict {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	switch failures := record.Steps[journal.StepCutOverMinio].Failures; {
	case failures >= tries:
		return actions.Hold(fmt.Sprintf("the switch failed %d times, and Service minio leads to the single MinIO: %s; \"ekco retry %s\" tries it again", failures, cut.Error, record.ID)).About("tries")
	case failures > 0 && time.Since(cut.FailedAt) < triesRest:
		return actions.Hold(fmt.Sprintf("the switch failed, and Service minio leads to the single MinIO: %s; it is tried again at %s", cut.Error, words.Stamp(cut.FailedAt.Add(triesRest)))).About("rest")
	}
	return actions.Pass()
}

func (m *migrator) keptLongEnough(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass() // nothing was changed, so there is nothing to wait for
	}
	verdict := m.stillServed(ctx, record)
	if verdict.Kind != actions.VerdictPass {
		return verdict
	}
	return verdict.About("served").OnceLasting(m.KeepSource, "the highly available MinIO serves; the single one is kept until it has done so for long enough")
}

func (m *migrator) stillServed(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass()
	}
	live, err := m.api.Read(ctx)
	if verdict := judge(record, live, err); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	if live.Service != journal.MinioServiceHA {
		return actions.Hold(fmt.Sprintf("Service minio leads to %s, no more to ha-minio, so that the single MinIO is not deleted; if that is meant, cancel this with \"ekco cancel %s\"", live.Service, record.ID)).About("service")
	}
	if err := m.api.Healthy(ctx); err != nil {
		return actions.Hold(err.Error()).About("unhealthy")
	}
	return actions.Pass()
}
