package minio

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// recheckInterval is the pause until EKCO compares again after it found data on one side only.
const recheckInterval = time.Hour

// objectsOnlyIn names the buckets and versions that exist in one but not in other. Implementations are
// [replica.OnlyIn], [replica.WrittenOnlyIn] and [replica.Foreign].
type objectsOnlyIn func(ctx context.Context, one, other s3.Source, since time.Time) (replica.Names, error)

// onlyIn returns the buckets, versions, users and policies that exist in one but not in other. It leaves out data whose
// last change was before since.
func onlyIn(ctx context.Context, one, other minio.Store, since time.Time, objects objectsOnlyIn) (journal.MinioFound, error) {
	names, err := objects(ctx, one, other, since)
	if err != nil {
		return journal.MinioFound{}, err
	}
	found := journal.MinioFound{Count: names.Count, Names: names.First, At: time.Now().UTC()}
	if !since.IsZero() {
		return found, nil // MinIO does not report when users and policies were created
	}
	users, err := usersOnlyIn(ctx, one, other)
	found.Count, found.Names = found.Count+len(users), append(users, found.Names...)
	found.Names = found.Names[:min(len(found.Names), replica.MaxNames)]
	return found, err
}

// usersOnlyIn names the users, groups and policies that exist in one but not in other.
func usersOnlyIn(ctx context.Context, one, other minio.Store) ([]string, error) {
	ours, err := one.ExportIAM(ctx)
	if err != nil {
		return nil, err
	}
	theirs, err := other.ExportIAM(ctx)
	if err != nil {
		return nil, err
	}
	return ours.NotIn(theirs), nil
}

// textOf returns a text for persons that names the data that EKCO found.
func textOf(found journal.MinioFound) string {
	text := strings.Join(found.Names, ", ")
	if more := found.Count - len(found.Names); more > 0 {
		text = fmt.Sprintf("%s and %d more, too many to name and release", text, more)
	}
	return text
}

// keyFor returns the key of a hold. A force releases exactly the names that the hold shows, in this store.
func keyFor(found journal.MinioFound) string {
	return listKey(append([]string{found.Store}, found.Names...))
}

// listKey returns the key of a hold that shows a list of names.
func listKey(names []string) string {
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// releaseCommand returns the command that releases the list with this key.
func releaseCommand(key string, record journal.ActionRecord) string {
	return fmt.Sprintf("\"ekco retry --force --list %s %s\"", key, record.ID)
}

// isReleased reports whether a person released everything in found. shown is the list in the hold that the person
// released.
func isReleased(found, shown journal.MinioFound, record journal.ActionRecord, preflight string) bool {
	named := found.Count == len(found.Names) && !slices.ContainsFunc(found.Names, func(name string) bool { return !slices.Contains(shown.Names, name) })
	return named && found.Store == shown.Store && record.HasForced(preflight, keyFor(shown))
}

// holdFor holds the step that found data until a person releases that data, or until the next check is due. A check is
// due after [recheckInterval], or when a person asks for one.
func holdFor(record journal.ActionRecord, step, preflight, reason string, found journal.MinioFound) actions.Verdict {
	asked := record.Steps[step].Attempts == 0
	if found.Count == 0 || asked || !happenedWithin(found.At, recheckInterval) || isReleased(found, found, record, preflight) {
		return actions.Pass()
	}
	return actions.Hold(reason).AboutList(keyFor(found))
}

// nothingForeign holds while the target has data that EKCO did not copy, because EKCO would remove that data.
func nothingForeign(_ context.Context, record journal.ActionRecord) actions.Verdict {
	left, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	return holdFor(record, journal.StepPrepareMinio, MinioNothingForeign, foreignText(left.Foreign, record), left.Foreign)
}

func foreignText(found journal.MinioFound, record journal.ActionRecord) string {
	return fmt.Sprintf("ha-minio has %s that standalone MinIO does not have, and that may not be copies by EKCO: %s; a migration removes them; if standalone MinIO lost data, repair its volume first; save what you need; "+
		"\"ekco retry %s\" checks again; %s removes exactly the items named here", words.Count(found.Count, "item"), textOf(found), record.ID, releaseCommand(keyFor(found), record))
}

// nothingLacks holds the deletion of standalone MinIO while only standalone MinIO has some data.
func nothingLacks(_ context.Context, record journal.ActionRecord) actions.Verdict {
	for _, step := range []string{journal.StepCompareMinio, journal.StepCompareAgainMinio, journal.StepDeleteMinioDeployment} {
		left, err := outputOf[journal.MinioCompared](record, step)
		if err != nil {
			return actions.Hold(err.Error()).About("outputs")
		}
		if verdict := holdFor(record, step, MinioNothingLacks, missingText(step, left, record), left.MinioFound); verdict.Kind != actions.VerdictPass {
			return verdict
		}
	}
	return actions.Pass()
}

func missingText(step string, left journal.MinioCompared, record journal.ActionRecord) string {
	why := "Service minio selects ha-minio; EKCO did not switch it, or the Service or Deployment minio was changed since"
	if step != journal.StepCompareMinio {
		why = "standalone MinIO was changed after the switch, for example through another Service, and that was not copied; clients may have removed some of the following from ha-minio since"
	}
	if left.Unread {
		return fmt.Sprintf("%s; EKCO cannot check whether ha-minio has all data of standalone MinIO: %s; \"ekco retry %s\" checks again; %s deletes Deployment minio anyway, and keeps its claim",
			why, textOf(left.MinioFound), record.ID, releaseCommand(keyFor(left.MinioFound), record))
	}
	return fmt.Sprintf("%s; the deletion of standalone MinIO would lose %s that ha-minio does not have: %s; copy what you need; "+
		"\"ekco retry %s\" checks again; %s accepts the loss of exactly the items named here", why, words.Count(left.Count, "item"), textOf(left.MinioFound), record.ID, releaseCommand(keyFor(left.MinioFound), record))
}

// compareStores checks whether the highly available MinIO has all data of standalone MinIO, if EKCO did not make the
// switch itself. Data that clients later overwrote on the highly available MinIO does not count as missing. Data that
// they deleted there does count: EKCO cannot know the reason. Each check first replaces the pod of standalone MinIO.
type compareStores struct{ *migrator }

func (s compareStores) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	left, err := outputOf[journal.MinioCompared](step.Action, step.Planned.ID)
	return actions.Proof{
		Done: left.Done, Missing: "EKCO has not verified that ha-minio has all data of standalone MinIO",
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

func (s compareStores) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	left, err := s.compareOnce(ctx, step)
	if err != nil {
		return nil, err
	}
	return requireNothingMissing(step, &left)
}

// requireNothingMissing returns the outputs of a step that searched for missing data. It returns an error if some data
// is missing and no person released that data.
func requireNothingMissing(step actions.StepContext, left *journal.MinioCompared) (json.RawMessage, error) {
	before, err := outputOf[journal.MinioCompared](step.Action, step.Planned.ID)
	if err != nil {
		return nil, err
	}
	left.Done = left.Count == 0 || isReleased(left.MinioFound, before.MinioFound, step.Action, MinioNothingLacks)
	outputs, err := json.Marshal(left)
	if err != nil || left.Done {
		return outputs, err
	}
	return nil, &actions.UnfinishedError{Left: missingText(step.Planned.ID, *left, step.Action), Waits: true, Outputs: outputs}
}

// isUnknown reports whether EKCO cannot compare until a person repairs one of the stores.
func isUnknown(err error) bool {
	return errors.As(err, new(noSourceError)) || errors.As(err, new(otherSourceError)) || errors.As(err, new(otherTargetError)) || errors.As(err, new(notCutOffError))
}

// unknownResult returns the result of a check that could not compare.
func unknownResult(why error, store string) journal.MinioCompared {
	found := journal.MinioFound{Count: 1, Names: []string{why.Error()}, At: time.Now().UTC(), Store: store}
	return journal.MinioCompared{MinioFound: found, Unread: true}
}

// compareOnce compares after it has made sure that no client can write to standalone MinIO.
func (s compareStores) compareOnce(ctx context.Context, step actions.StepContext) (journal.MinioCompared, error) {
	version, err := s.servingVersion(ctx)
	if err != nil {
		return journal.MinioCompared{}, err
	}
	left, err := outputOf[journal.MinioCompared](step.Action, step.Planned.ID)
	if err != nil {
		return journal.MinioCompared{}, err
	}
	both, err := s.cutOff(ctx, step, &left)
	var found journal.MinioCompared
	if err == nil {
		defer both.close()
		found, err = both.missingDataSince(ctx, "", replica.OnlyIn)
	}
	if err == nil {
		err = both.requireIDs(ctx, left.Store, left.Target) // the comparison may have taken hours
	}
	if isUnknown(err) {
		found, err = unknownResult(err, left.Store), nil
	}
	if err != nil {
		return journal.MinioCompared{}, err
	}
	found.Version, found.Target = version, left.Target
	then, err := s.servingVersion(ctx)
	if err == nil && then != version {
		err = &actions.UnfinishedError{Left: "Service minio was changed during the comparison", Waits: true}
	}
	return found, err
}

// missingData returns the data of standalone MinIO that the highly available MinIO lacks or has in another form.
func (s sides) missingData(ctx context.Context, objects objectsOnlyIn) (journal.MinioFound, error) {
	found, err := onlyIn(ctx, s.source, s.target, time.Time{}, objects)
	if err == nil {
		err = addChanged(ctx, s.source, s.target, false, &found)
	}
	found.Store = s.id
	return found, err
}

// addChanged adds items that differ between both sides: attributes of versions, settings of buckets, and contents of
// users, groups and policies. It leaves out items that were created or overwritten later, and, if other is a copy,
// differences that EKCO's copy itself causes.
func addChanged(ctx context.Context, one, other minio.Store, isCopy bool, found *journal.MinioFound) error {
	ours, err := one.ExportIAM(ctx)
	if err != nil {
		return err
	}
	theirs, err := other.ExportIAM(ctx)
	if err != nil {
		return err
	}
	names := ours.Changed(theirs)
	if isCopy {
		names = slices.DeleteFunc(names, s3.IsBuiltIn) // another release has other built-in policies
	}
	report, err := replica.Compare(ctx, one, other, replica.CompareOptions{OnlyAttributes: true, SameTime: isCopy}) // [replica.Foreign] has named the other differences
	if err != nil {
		return err
	}
	for _, bucket := range slices.Sorted(maps.Keys(report.Settings)) {
		has, err := one.Settings(ctx, bucket)
		if err != nil {
			return err
		}
		for _, name := range report.Settings[bucket] {
			if !isCopy || mayBeOfClients(name, has[name]) {
				names = append(names, fmt.Sprintf("the %s of bucket %s (%s)", name, bucket, name.Mark(has[name])))
			}
		}
	}
	for _, d := range report.Differences {
		names = append(names, fmt.Sprintf("the %v of %s (%x)", d.Aspects, d.Name, d.State[:4]))
	}
	found.Count += len(names) + report.Count - len(report.Differences)
	found.Names = append(found.Names, names...)
	found.Names = found.Names[:min(len(found.Names), replica.MaxNames)]
	return nil
}

// mayBeOfClients reports whether clients may have made this setting of the copy. EKCO itself enables versioning, sets
// no settings that act automatically, and does not set the region.
func mayBeOfClients(name s3.SettingName, value string) bool {
	return value != "" && value != s3.VersioningEnabled && name != s3.Region && (name != s3.ObjectLock || strings.Contains(value, "<Rule>"))
}

// servingVersion returns the Service's resource version. It returns an error unless the Service selects the highly
// available MinIO, because clients use standalone MinIO until then.
func (s compareStores) servingVersion(ctx context.Context) (version string, err error) {
	selected, version, err := s.api.ServiceTarget(ctx)
	if err == nil && selected != journal.MinioServiceHA {
		err = &actions.UnfinishedError{Left: selectsText(selected), Waits: true}
	}
	return version, err
}

// successorTimeout is how long EKCO waits for the next pod of standalone MinIO to serve, while no client waits for that
// pod.
const successorTimeout = 2 * time.Minute

// notCutOffError is a reason why clients may still write to standalone MinIO through connections from before the
// switch.
type notCutOffError string

func (e notCutOffError) Error() string { return string(e) }

// cutOff replaces the pods of standalone MinIO, to which clients may still be connected from before the switch, and
// opens the new pod. It first records what the old pod served, because the new pod may find an empty volume.
func (s compareStores) cutOff(ctx context.Context, step actions.StepContext, left *journal.MinioCompared) (both sides, err error) {
	single, err := s.api.Single(ctx)
	if err != nil {
		return both, err
	}
	if crowded := single.Crowded(); crowded != "" {
		return both, notCutOffError(crowded)
	}
	pod, serves := single.Serving()
	if !serves {
		return both, noSourceError{single.Lacks()}
	}
	no, err := s.api.Successor(ctx, pod)
	if err != nil {
		return both, err
	}
	if no.Cause != "" {
		return both, notCutOffError(fmt.Sprintf("clients may still be connected to pod %s of standalone MinIO, and no replacement can start: %s", pod.Name, no.Reason))
	}
	if both, err = s.openPod(ctx, pod, step.Action); err != nil {
		return both, err
	}
	both.close()
	left.Store, left.Target = both.id, both.targetID
	if err := step.NoteAhead(ctx, left); err != nil {
		return both, err
	}
	old := attempt{migrator: s.migrator, step: step, state: journal.MinioCutOver{Controller: pod.Controller}}
	for _, pod := range single.Own() {
		old.state.Pods = append(old.state.Pods, pod.UID)
	}
	soon, cancel := context.WithTimeout(ctx, successorTimeout)
	defer cancel()
	pod, err = old.replacePod(soon)
	if crowded := crowdedError(""); errors.As(err, &crowded) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return both, notCutOffError(err.Error())
	}
	if err == nil {
		both, err = s.openPod(ctx, pod, step.Action)
	}
	if err != nil {
		return both, err
	}
	if err = both.requireIDs(ctx, left.Store, left.Target); err != nil {
		both.close()
	}
	return both, err
}
