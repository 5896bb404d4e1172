package minio

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/s3/replica"
	"github.com/replicatedhq/ekco/journal"
)

// awaitServed changes nothing: its preflight waits until the highly available MinIO has served for
// [Migration.KeepSource].
type awaitServed struct {
	actions.NoEffect
	*migrator
}

func (s awaitServed) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	selected, _, err := s.api.ServiceTarget(ctx)
	return actions.Proof{Done: err == nil && selected == journal.MinioServiceHA, Missing: fmt.Sprintf("Service minio selects %s", selected)}, err
}

// serviceUntouched ends a migration if the Service was changed after EKCO knew that the highly available MinIO had all
// data. Clients may have used standalone MinIO while EKCO was away, and EKCO would delete what they wrote there. The
// next migration compares again.
func (m *migrator) serviceUntouched(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	version, _, err := knownAt(record)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if version == "" || record.Steps[journal.StepDeleteMinioDeployment].Done() {
		return actions.Pass()
	}
	_, now, err := m.api.ServiceTarget(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case now != version:
		return actions.Abandon("Service minio was changed after it selected ha-minio, and may have selected standalone MinIO in between: the next migration compares both").About("touched")
	}
	return actions.Pass()
}

// knownAt returns the resource version of the Service and the fingerprint of standalone MinIO at the time when EKCO
// knew that the highly available MinIO had all data. Each result is "" if it is not recorded.
func knownAt(record journal.ActionRecord) (version, fingerprint string, err error) {
	plan, err := planOf(record)
	if err != nil {
		return "", "", err
	}
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return "", "", err
	}
	compared, err := outputOf[journal.MinioCompared](record, journal.StepCompareMinio)
	if err != nil {
		return "", "", err
	}
	again, err := outputOf[journal.MinioCompared](record, journal.StepCompareAgainMinio)
	switch {
	case err != nil:
		return "", "", err
	case compared.Done:
		version, fingerprint = compared.Version, compared.Fingerprint
	case plan.HandOver && !plan.Switched:
		return "", "", nil // EKCO has not compared yet
	case plan.HandOver:
		version, fingerprint = plan.Version, plan.Fingerprint
	default:
		version, fingerprint = cut.Version, cut.Fingerprint
	}
	if again.Done {
		fingerprint = again.Fingerprint
	}
	return version, fingerprint, nil
}

// compareAgain verifies that standalone MinIO did not change after the highly available MinIO had all data, or that the
// highly available MinIO has these changes too. Unlike the deletion, this step can be cancelled.
type compareAgain struct{ *migrator }

func (s compareAgain) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	proof, err := compareStores(s).Prove(ctx, step)
	if err != nil || proof.Done {
		return proof, err
	}
	gone, err := deleteDeployment(s).Prove(ctx, step)
	proof.Done = gone.Done // another client deleted the Deployment: EKCO verified nothing, and keeps the claim
	return proof, err
}

func (s compareAgain) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	if unread, err := isUnread(step.Action); err != nil || unread {
		outputs, failed := json.Marshal(journal.MinioCompared{Done: true}) // EKCO keeps the claim
		return outputs, errors.Join(err, failed)
	}
	left, err := s.findLateChanges(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	return requireNothingMissing(step, &left)
}

// deleteDeployment deletes the Deployment with the planned UID. It first checks for data that clients wrote to it after
// the highly available MinIO had all data.
type deleteDeployment struct{ *migrator }

func (s deleteDeployment) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	plan, err := planOf(step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	single, err := s.api.Single(ctx)
	return actions.Proof{
		Done: err == nil && single.Deployment != plan.Deployment, Missing: "Deployment minio still exists", Outputs: lateOutputs(step),
	}, err
}

func (s deleteDeployment) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	proof, err := s.Prove(ctx, step)
	if err != nil || proof.Done {
		return proof.Outputs, err
	}
	plan, err := planOf(step.Action)
	if err != nil {
		return nil, err
	}
	outputs, err := s.checkBeforeDeletion(ctx, step)
	if err != nil {
		return nil, err
	}
	defer s.changed()
	err = kube.IgnoreNotFound(s.api.DeleteDeployment(ctx, plan.Deployment))
	if kube.Sentinel(err) != nil && !errors.Is(err, kube.ErrUnavailable) { // if no answer came, it may be deleted
		err = errors.Join(err, s.notDeleted(ctx, step))
	}
	return outputs, err
}

// notDeleted records that the last check is no longer valid, because standalone MinIO still runs.
func (deleteDeployment) notDeleted(ctx context.Context, step actions.StepContext) error {
	return step.Note(context.WithoutCancel(ctx), journal.MinioCompared{})
}

// checkBeforeDeletion returns an error if only standalone MinIO has some data and no person released that data.
func (s deleteDeployment) checkBeforeDeletion(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	unread, err := isUnread(step.Action)
	if err != nil || unread || !hasLateCheck(step.Action) {
		return lateOutputs(step), err // EKCO keeps the claim
	}
	left, err := s.findLateChanges(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	outputs, err := requireNothingMissing(step, &left)
	if err != nil {
		return nil, err
	}
	if err := s.requireNothingNested(ctx, step); err != nil {
		return nil, err
	}
	if gone, err := s.Prove(ctx, step); err != nil || gone.Done {
		return gone.Outputs, err // another client deleted it, so its drive may not have been searched
	}
	if err := step.NoteAhead(ctx, left); err != nil {
		return nil, err // an EKCO on another node must know that this EKCO deletes it
	}
	if err := step.CheckAgain(ctx); err != nil {
		return nil, errors.Join(err, s.notDeleted(ctx, step))
	}
	return outputs, nil
}

// requireNothingNested checks again for objects below other objects, which clients may have written since the step
// before. That step reports them and holds.
func (s deleteDeployment) requireNothingNested(ctx context.Context, step actions.StepContext) error {
	step.Planned.ID = journal.StepLookBelowAgainMinio
	_, err := findNested{s.api, s.sourceDrive}.Do(ctx, step)
	if found, is := errors.AsType[*actions.UnfinishedError](err); is {
		// The last check is no longer valid, also if another client deletes the Deployment now.
		return &actions.UnfinishedError{Left: found.Left, Waits: true, RepeatStep: step.Planned.ID, Outputs: json.RawMessage("{}")}
	}
	return err
}

// checkValidFor is how long the last check is valid, from its end to the deletion.
const checkValidFor = 10 * time.Minute

// lateOutputs returns the recorded result of the check, which a later step needs. It leaves out a result older than
// checkValidFor, which proves nothing if another client deletes the Deployment.
func lateOutputs(step actions.StepContext) json.RawMessage {
	outputs := step.Action.Steps[step.Planned.ID].Outputs
	left, err := outputOf[journal.MinioCompared](step.Action, step.Planned.ID)
	if len(outputs) == 0 || err == nil && left.Done && !happenedWithin(left.At, checkValidFor) {
		return json.RawMessage("{}")
	}
	return outputs
}

// findLateChanges returns what the highly available MinIO lacks, if standalone MinIO changed after the highly available
// MinIO had all data. This can include data that clients deleted there later, because EKCO cannot distinguish it from
// lost data.
func (m *migrator) findLateChanges(ctx context.Context, record journal.ActionRecord) (journal.MinioCompared, error) {
	_, was, err := knownAt(record)
	_, target, otherErr := storesOf(record)
	if err = errors.Join(err, otherErr); err != nil {
		return journal.MinioCompared{}, err
	}
	if target == "" {
		was = "" // nothing shows that it is the same store as at the switch, so everything is compared
	}
	both, err := m.open(ctx, record)
	var left journal.MinioCompared
	if err == nil {
		defer both.close()
		left, err = both.missingDataSince(ctx, was, replica.WrittenOnlyIn)
	}
	if err == nil {
		err = both.identify(ctx, record) // the check may have taken hours
	}
	if isUnknown(err) {
		return unknownResult(err, ""), nil
	}
	left.At = time.Now().UTC()
	return left, err
}

// missingDataSince is [sides.missingData] if standalone MinIO's fingerprint differs from was. If it is the same, only
// attributes that standalone MinIO does not list can have changed, so missingDataSince compares only these.
func (s sides) missingDataSince(ctx context.Context, was string, objects objectsOnlyIn) (left journal.MinioCompared, err error) {
	all, err := replica.Survey(ctx, s.source)
	if err != nil {
		return left, err
	}
	switch left.Fingerprint, err = s.fingerprint(ctx, all.Fingerprint); {
	case err != nil:
	case left.Fingerprint != was:
		left.MinioFound, err = s.missingData(ctx, objects)
	case all.Fingerprint.Incomplete:
		err = addChanged(ctx, s.source, s.target, false, &left.MinioFound)
	}
	left.Store, left.Target = s.id, s.targetID
	return left, err
}

// hasLateCheck reports whether the plan has the check of [migrator.findLateChanges]. Plans of earlier EKCOs do not have
// it.
func hasLateCheck(record journal.ActionRecord) bool {
	planned, is := record.Plan.Step(journal.StepDeleteMinioDeployment)
	return !record.Planned || is && planned.Does == doesLookAndDelete
}

// deleteSingleClaim deletes the claim of standalone MinIO. It is done when the claim is being deleted, because the
// claim exists until the pod is gone. It keeps a claim that a new Deployment uses.
type deleteSingleClaim struct{ *migrator }

// skippedStep is the reason why EKCO skipped a step.
type skippedStep struct {
	Left string `json:"left"`
}

func (s deleteSingleClaim) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	plan, err := planOf(step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	claim, exists, err := s.api.SingleClaim(ctx)
	if err != nil || !exists || claim.Ends || claim.UID != plan.Claim {
		return actions.Proof{Done: err == nil}, err
	}
	unread, err := isUnread(step.Action)
	if err != nil {
		return actions.Proof{}, err
	}
	if unread {
		return skippedProof(unreadClaimReason)
	}
	single, err := s.api.Single(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	if single.Deployment != "" {
		return skippedProof("the claim minio-pv-claim is kept: a new Deployment minio uses it")
	}
	late, err := outputOf[journal.MinioCompared](step.Action, journal.StepDeleteMinioDeployment)
	if err != nil {
		return actions.Proof{}, err
	}
	if hasLateCheck(step.Action) && !late.Done {
		return skippedProof("the claim minio-pv-claim is kept: another Kubernetes client deleted Deployment minio before EKCO had verified that ha-minio has all its data; delete the claim when you are sure that no data is missing")
	}
	return s.keepIfNeeded(ctx, step.Action, late.Target)
}

// keepIfNeeded keeps the claim if the highly available MinIO is gone or has other volumes, because the claim may have
// the last copy of the data. compared is the id of its store at the last check; records of older versions lack that id.
func (s deleteSingleClaim) keepIfNeeded(ctx context.Context, record journal.ActionRecord, compared string) (actions.Proof, error) {
	live, err := s.api.Read(ctx)
	if verdict := judgeStatefulSet(record, live, err); verdict.Kind == actions.VerdictAbandon {
		return skippedProof("the claim minio-pv-claim is kept: " + verdict.Reason)
	}
	_, was, known := storesOf(record)
	was = cmp.Or(was, compared)
	if err = errors.Join(err, known); err != nil || was == "" {
		return actions.Proof{Missing: claimExists}, err
	}
	target, err := s.connectTarget(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	defer target.Close()
	is, err := idOf(ctx, "ha-minio", target)
	if err == nil && is != was {
		return skippedProof("the claim minio-pv-claim is kept: " + otherTargetError{is, was}.Error())
	}
	return actions.Proof{Missing: claimExists}, err
}

const claimExists = "the claim of standalone MinIO still exists"

// unreadClaimReason is the reason to keep a claim that may have data without a copy.
const unreadClaimReason = "the claim minio-pv-claim is kept: it may have the last writes to standalone MinIO, which were not copied; delete it when you are sure that no data is missing"

func skippedProof(why string) (actions.Proof, error) {
	outputs, err := json.Marshal(skippedStep{why})
	return actions.Proof{Done: err == nil, Outputs: outputs}, err
}

// isUnread reports whether the Service was switched to the highly available MinIO without copying the last writes.
func isUnread(record journal.ActionRecord) (bool, error) {
	plan, err := planOf(record)
	if err != nil {
		return false, err
	}
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return false, err
	}
	compared, err := outputOf[journal.MinioCompared](record, journal.StepCompareMinio)
	if err != nil {
		return false, err
	}
	again, err := outputOf[journal.MinioCompared](record, journal.StepCompareAgainMinio)
	if err != nil {
		return false, err
	}
	late, err := outputOf[journal.MinioCompared](record, journal.StepDeleteMinioDeployment)
	return plan.HandOver && plan.Unread || cut.Unread || compared.Unread || again.Unread && again.Done || late.Unread && record.Steps[journal.StepDeleteMinioDeployment].Done(), err
}

func (s deleteSingleClaim) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	proof, err := s.Prove(ctx, step)
	if err != nil || proof.Done {
		return proof.Outputs, err
	}
	plan, err := planOf(step.Action)
	if err != nil {
		return nil, err
	}
	return nil, kube.IgnoreNotFound(s.api.DeleteSingleClaim(ctx, plan.Claim))
}
