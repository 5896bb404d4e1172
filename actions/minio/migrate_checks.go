package minio

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// The preflights of a migration, in addition to [MinioHealthy].
const (
	// MinioStillToMigrate requires that both MinIOs are still the planned ones, and that the Service selects standalone
	// MinIO.
	MinioStillToMigrate = "MinioStillToMigrate"
	// MinioSourceRuns requires that one pod of standalone MinIO serves, and that no other pod has its label.
	MinioSourceRuns = "MinioSourceRuns"
	// MinioBothAnswer requires that both MinIOs accept the credentials.
	MinioBothAnswer = "MinioBothAnswer"
	// MinioNothingForeign requires that the highly available MinIO has nothing but EKCO's copies. It may be forced.
	MinioNothingForeign = "MinioNothingForeign"
	// MinioNothingLacks requires that the highly available MinIO has all data of standalone MinIO, if EKCO did not
	// switch the Service itself. It may be forced.
	MinioNothingLacks = "MinioNothingLacks"
	// MinioNoBypass requires that clients reach standalone MinIO only through Service minio. It may be forced.
	MinioNoBypass = "MinioNoBypass"
	// MinioRoom requires room for the rest of the copy, with a fifth of each file system kept free. It may be forced.
	// EKCO checks it again during the copy.
	MinioRoom = "MinioRoom"
	// MinioCarriedOver records the data that cannot be copied, and holds the switch until a person has released that
	// data. It may be forced.
	MinioCarriedOver = "MinioCarriedOver"
	// MinioSourceCalm requires that standalone MinIO did not change too fast recently.
	MinioSourceCalm = "MinioSourceCalm"
	// MinioSuccessor requires that standalone MinIO is the store that EKCO copied, and that another pod can replace the
	// serving pod. It may be forced, for one attempt.
	MinioSuccessor = "MinioSuccessor"
	// MinioSourceKept holds while only the highly available MinIO has some data, and no event reported its removal from
	// standalone MinIO. It may be forced.
	MinioSourceKept = "MinioSourceKept"
	// MinioTries holds for retryPause after a failed switch, and without limit after maxTries failed switches.
	MinioTries = "MinioTries"
	// MinioKeptLongEnough requires that the highly available MinIO has served for [Migration.KeepSource].
	MinioKeptLongEnough = "MinioKeptLongEnough"
	// MinioStillServed requires that the highly available MinIO serves.
	MinioStillServed = "MinioStillServed"
)

// keyRoom is the key of a hold of [MinioRoom].
const keyRoom = "room"

const (
	// retryPause is the pause after a failed switch. maxTries is the maximum number of attempts.
	retryPause = 5 * time.Minute
	maxTries   = 3
	// calmPause is the pause after standalone MinIO changed too fast.
	calmPause = 10 * time.Minute
)

func (m *migrator) preflights() map[string]actions.Preflight {
	all := map[string]actions.Preflight{MinioHealthy: requireHealthy(m.api)}
	for name, check := range map[string]actions.PreflightFunc{
		MinioStillToMigrate: m.stillToMigrate, MinioSourceRuns: m.sourceRuns, MinioBothAnswer: m.bothAnswer, MinioRoom: m.hasRoom,
		MinioCarriedOver: carriedOver, MinioSourceCalm: sourceCalm, MinioNothingNested: nothingNested, MinioSuccessor: m.mayBeReplaced, MinioNoBypass: m.noBypass, MinioNothingForeign: nothingForeign, MinioNothingLacks: nothingLacks, MinioSourceKept: sourceKept, MinioTries: m.mayTry,
		MinioKeptLongEnough: m.keptLongEnough, MinioStillServed: m.stillServed,
	} {
		all[name] = check
	}
	return all
}

func (m *migrator) stillToMigrate(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	plan, err := planOf(record)
	if err != nil {
		return actions.Hold(err.Error()).About("facts")
	}
	live, err := m.api.Read(ctx)
	if verdict := judgeStatefulSet(record, live, err); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	switch {
	case live.Deployment != plan.Deployment:
		return actions.Abandon("Deployment minio was deleted or replaced").About("deployment")
	case live.Service == journal.MinioServiceSingle:
		return m.selectorKept(ctx, record)
	case live.Service == journal.MinioServiceHA:
		return actions.Abandon("Service minio already selects ha-minio, so EKCO copies nothing more to it").About("switched")
	case live.Service == journal.MinioServiceDisabled:
		return actions.Abandon("Service minio selects no pods, which this step does not expect: EKCO repairs that first").About("disabled")
	}
	return actions.Hold(selectsText(live.Service) + "; EKCO continues when it selects standalone MinIO").About("service")
}

func (m *migrator) sourceRuns(ctx context.Context, _ journal.ActionRecord) actions.Verdict {
	single, err := m.api.Single(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	if crowded := single.Crowded(); crowded != "" {
		return actions.Hold(crowded).About("crowded")
	}
	if _, serves := single.Serving(); !serves {
		return actions.Hold(noSourceError{single.Lacks()}.Error()).About("source")
	}
	return actions.Pass()
}

func (m *migrator) bothAnswer(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	both, err := m.open(ctx, record)
	if err != nil {
		return actions.Hold(err.Error()).About(keyOr(err, "unread"))
	}
	both.close()
	return actions.Pass()
}

// notCarried returns the names of all data that EKCO knows it cannot copy.
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
	all = slices.Concat(prepared.NotCarried, copied.NotCarried, caught.NotCarried)
	slices.Sort(all)
	return slices.Compact(all), nil
}

// carriedOver holds the switch if an attempt found data that the switch would lose and that no person released.
// Otherwise it passes, with a warning if EKCO knows of data that it cannot copy. The warning names the data, and each
// change of it is recorded.
func carriedOver(_ context.Context, record journal.ActionRecord) actions.Verdict {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	held := holdFor(record, journal.StepCutOverMinio, MinioCarriedOver, uncarriedText(cut.Uncarried, record), cut.Uncarried)
	if held.Kind != actions.VerdictPass {
		return held
	}
	names, err := notCarried(record)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	prepared, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	var warnings []string
	if len(names) > 0 {
		warnings = append(warnings, "not everything can be carried over: "+strings.Join(names, "; "))
	}
	if isOlder(prepared.TargetRelease, prepared.SourceRelease) {
		warnings = append(warnings, fmt.Sprintf("ha-minio runs MinIO of %s, which is older than standalone MinIO, of %s: what only the newer one supports is not carried over",
			prepared.TargetRelease, prepared.SourceRelease))
	}
	if len(warnings) == 0 {
		return actions.Pass()
	}
	text := strings.Join(warnings, "; ")
	sum := sha256.Sum256([]byte(text))
	return actions.PassBecause(text).About(hex.EncodeToString(sum[:8]))
}

// uncarriedText returns a reason that names the data that the switch would lose.
func uncarriedText(found journal.MinioFound, record journal.ActionRecord) string {
	return fmt.Sprintf("ha-minio does not accept %s, which would be deleted with standalone MinIO: %s; ask the owner to store the data in another way, or to remove it; "+
		"\"ekco retry %s\" checks again; %s accepts the loss of exactly the items named here", words.Count(found.Count, "item"), textOf(found), record.ID, releaseCommand(keyFor(found), record))
}

// isOlder reports whether one server version is older than another. A version is the time of its release; isOlder
// returns false if it cannot be parsed.
func isOlder(one, other string) bool {
	from, err := time.Parse(time.RFC3339, one)
	if err != nil {
		return false
	}
	to, err := time.Parse(time.RFC3339, other)
	return err == nil && from.Before(to)
}

func sourceCalm(_ context.Context, record journal.ActionRecord) actions.Verdict {
	found, err := outputOf[journal.MinioCaughtUp](record, journal.StepCatchUpMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if found.TooFast == "" || !happenedWithin(found.TooFastSince, calmPause) {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("%s; EKCO tries again at %s", found.TooFast, words.Stamp(found.TooFastSince.Add(calmPause)))).About("fast")
}

// noBypass holds if clients could write to the pod that only EKCO should reach.
func (m *migrator) noBypass(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	names, err := m.api.Bypasses(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	key := listKey(names)
	if len(names) == 0 || record.HasForced(MinioNoBypass, key) {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("clients can reach standalone MinIO without Service minio: %s; what they write there may not be copied, and would be lost; "+
		"switch them to Service minio and remove this access; if no client writes this way, %s continues", strings.Join(names, ", "), releaseCommand(key, record))).AboutList(key)
}

// mayTry holds for retryPause after a failed attempt, and without limit after maxTries. `ekco retry` resets the count.
func (m *migrator) mayTry(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	step := record.Steps[journal.StepCutOverMinio]
	last, pauses := min(cut.Tries, step.Failures) >= maxTries, step.Attempts > 0 && happenedWithin(cut.FailedAt, retryPause)
	if !last && !pauses {
		return actions.Pass()
	}
	selected, _, err := m.api.ServiceTarget(ctx)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	if last {
		return actions.Hold(fmt.Sprintf("the switch failed %d times: %s; %s; \"ekco retry %s\" tries again", cut.Tries, cut.Error, selectsText(selected), record.ID)).About("tries")
	}
	return actions.Hold(fmt.Sprintf("the switch did not finish: %s; %s; EKCO tries again at %s", cut.Error, selectsText(selected), words.Stamp(cut.FailedAt.Add(retryPause)))).About("rest")
}

// happenedWithin reports whether the time at is less than span ago. It returns false for a time in the future, which
// another clock must have set.
func happenedWithin(at time.Time, span time.Duration) bool {
	ago := time.Since(at)
	return ago >= 0 && ago < span
}

// keyOr returns the key of an error, or otherwise if the error has no key.
func keyOr(err error, otherwise string) string { return cmp.Or(actions.KeyOf(err), otherwise) }

func (m *migrator) keptLongEnough(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass() // nothing was changed, so no wait is needed
	}
	verdict := m.stillServed(ctx, record)
	if verdict.Kind != actions.VerdictPass {
		return verdict
	}
	return verdict.About("served").OnceLasting(m.KeepSource, "ha-minio must serve for "+words.Span(m.KeepSource)+" before standalone MinIO is deleted")
}

// missingReplicasText returns a text that names the missing replicas. If only a quorum runs, the loss of one more
// replica loses objects.
func (m *migrator) missingReplicasText(ctx context.Context) string {
	live, lacks, err := m.api.Unready(ctx)
	switch {
	case err != nil:
		return err.Error()
	case live.Replicas < live.Desired:
		return fmt.Sprintf("StatefulSet ha-minio specifies %d of %d replicas", live.Replicas, live.Desired)
	}
	return lacks
}

func (m *migrator) stillServed(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun {
		return actions.Pass()
	}
	live, err := m.api.Read(ctx)
	switch verdict := judgeStatefulSet(record, live, err); {
	case verdict.Kind == actions.VerdictAbandon && record.Steps[journal.StepDeleteMinioDeployment].Done():
		return actions.PassBecause(verdict.Reason + ": the claim minio-pv-claim is kept").About(verdict.Key)
	case verdict.Kind != actions.VerdictPass:
		return verdict
	}
	if (!hasNestedCheck(record, journal.StepLookBelowAgainMinio) || !hasLateCheck(record)) && !record.PastNoReturn {
		return actions.Abandon("an earlier version of EKCO planned this action without the last check of standalone MinIO before its deletion").About("unlooked")
	}
	if live.Service == journal.MinioServiceDisabled {
		return actions.Abandon("Service minio selects no pods, although it selected ha-minio: EKCO repairs that first").About("disabled")
	}
	if live.Service != journal.MinioServiceHA {
		advice := fmt.Sprintf("if this is intended, cancel with \"ekco cancel %s\"", record.ID)
		if record.PastNoReturn {
			advice = "EKCO continues when it selects ha-minio again"
		}
		return actions.Hold(fmt.Sprintf("Service minio selects %s instead of ha-minio, so standalone MinIO is not deleted; %s", live.Service, advice)).About("service")
	}
	if verdict := m.serviceUntouched(ctx, record); verdict.Kind != actions.VerdictPass {
		return verdict
	}
	if lacks := m.missingReplicasText(ctx); lacks != "" {
		return actions.Hold("standalone MinIO is deleted only while all replicas of ha-minio are ready: " + lacks).About("unhealthy")
	}
	plan, err := planOf(record)
	if err != nil {
		return actions.Hold(err.Error()).About("facts")
	}
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	unread, err := isUnread(record)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("outputs")
	case unread && plan.Claim != "":
		return actions.PassBecause(unreadClaimReason).About("claim")
	case len(cut.Aside) > 0:
		return actions.PassBecause(asideText(cut.Aside)).About("aside")
	}
	return actions.Pass()
}
