package minio

import (
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

// awaitServed has no effect: its preflight waits until the highly available MinIO has served for long enough.
type awaitServed struct {
	actions.NoEffect
	*migrator
}

func (s awaitServed) Prove(ctx context.Context, _ actions.StepContext) (actions.Proof, error) {
	leads, _, err := s.api.Leads(ctx)
	return actions.Proof{Done: err == nil && leads == journal.MinioServiceHA, Missing: fmt.Sprintf("Service minio selects %s", leads)}, err
}

// untouched ends a migration if the Service was changed after EKCO knew that the highly available MinIO had everything:
// clients may have used standalone MinIO while EKCO was away, and what they wrote there would be deleted. The next
// migration compares.
func (m *migrator) untouched(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	version, _, err := knownAt(record)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	if version == "" || record.Steps[journal.StepDeleteMinioDeployment].Done() {
		return actions.Pass()
	}
	_, now, err := m.api.Leads(ctx)
	switch {
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case now != version:
		return actions.Abandon("Service minio was changed after it selected ha-minio, and may have selected standalone MinIO in between: the next migration compares both").About("touched")
	}
	return actions.Pass()
}

// knownAt returns the resource version of the Service, and the fingerprint of standalone MinIO, from when EKCO knew
// that the highly available MinIO had everything; each is empty if it is not recorded.
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
		return "", "", nil // the comparison is still to come
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

// compareAgain verifies that standalone MinIO is as it was when the highly available one had everything. If it is not,
// the highly available one must still have everything. This step can be cancelled, unlike the deletion.
type compareAgain struct{ *migrator }

func (s compareAgain) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	proof, err := compare(s).Prove(ctx, step)
	if err != nil || proof.Done {
		return proof, err
	}
	gone, err := deleteDeployment(s).Prove(ctx, step)
	proof.Done = gone.Done // another client deleted the Deployment: EKCO verified nothing, and keeps the claim
	return proof, err
}

func (s compareAgain) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	if unread, err := isUnread(step.Action); err != nil || unread {
		outputs, failed := json.Marshal(journal.MinioCompared{Done: true}) // the claim is kept
		return outputs, errors.Join(err, failed)
	}
	left, err := s.late(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	return accounted(step, &left)
}

// deleteDeployment is done when there is no Deployment of that UID any more. It first checks for what clients wrote
// there after the highly available MinIO had everything.
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
	outputs, err := s.looked(ctx, step)
	if err != nil {
		return nil, err
	}
	defer s.changed()
	err = kube.Deleted(s.api.DeleteDeployment(ctx, plan.Deployment))
	if kube.Sentinel(err) != nil && !errors.Is(err, kube.ErrUnavailable) { // without an answer it may be deleted
		err = errors.Join(err, s.notDeleted(ctx, step))
	}
	return outputs, err
}

// notDeleted records that the last check no longer counts: standalone MinIO still runs.
func (deleteDeployment) notDeleted(ctx context.Context, step actions.StepContext) error {
	return step.Note(context.WithoutCancel(ctx), journal.MinioCompared{})
}

// looked returns what only standalone MinIO has and a person released, or an error.
func (s deleteDeployment) looked(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	unread, err := isUnread(step.Action)
	if err != nil || unread || !hasLateLook(step.Action) {
		return lateOutputs(step), err // the claim is kept
	}
	left, err := s.late(ctx, step.Action)
	if err != nil {
		return nil, err
	}
	outputs, err := accounted(step, &left)
	if err != nil {
		return nil, err
	}
	if err := s.below(ctx, step); err != nil {
		return nil, err
	}
	if err := step.NoteAhead(ctx, left); err != nil {
		return nil, err // an EKCO on another node must know that this one deletes it
	}
	if err := step.CheckAgain(ctx); err != nil {
		return nil, errors.Join(err, s.notDeleted(ctx, step))
	}
	return outputs, nil
}

// below checks once more for objects below others, which clients may have written since the step before. That step
// reports and holds for what it finds.
func (s deleteDeployment) below(ctx context.Context, step actions.StepContext) error {
	step.Planned.ID = journal.StepLookBelowAgainMinio
	_, err := lookBelow{s.api, s.sourceDrive}.Do(ctx, step)
	if found, is := errors.AsType[*actions.UnfinishedError](err); is {
		return &actions.UnfinishedError{Left: found.Left, Waits: true, Again: step.Planned.ID}
	}
	return err
}

// checkCounts is how long the last check counts, from its end to the deletion.
const checkCounts = 10 * time.Minute

// lateOutputs is the recorded result of the check, which a later step needs. If another client deletes the Deployment
// long after it, it proves nothing.
func lateOutputs(step actions.StepContext) json.RawMessage {
	outputs := step.Action.Steps[step.Planned.ID].Outputs
	left, err := outputOf[journal.MinioCompared](step.Action, step.Planned.ID)
	if len(outputs) == 0 || err == nil && left.Done && !within(left.At, checkCounts) {
		return json.RawMessage("{}")
	}
	return outputs
}

// late returns what the highly available MinIO does not have, if standalone MinIO is not as it was when the other one
// had everything. Clients may have deleted some of that from the highly available one since; EKCO cannot distinguish
// that from lost data.
func (m *migrator) late(ctx context.Context, record journal.ActionRecord) (journal.MinioCompared, error) {
	_, was, err := knownAt(record)
	if err != nil {
		return journal.MinioCompared{}, err
	}
	both, err := m.open(ctx, record)
	var left journal.MinioCompared
	if err == nil {
		defer both.close()
		left, err = both.missingSince(ctx, was)
	}
	if err == nil {
		err = both.identify(ctx, record) // the check may have taken hours
	}
	if isUnknown(err) {
		return unknown(err, ""), nil
	}
	left.At = time.Now().UTC()
	return left, err
}

// missingSince is missing, if standalone MinIO has another fingerprint than before.
func (s sides) missingSince(ctx context.Context, was string) (left journal.MinioCompared, err error) {
	all, err := replica.Survey(ctx, s.source)
	if err != nil {
		return left, err
	}
	if left.Fingerprint, err = s.fingerprint(ctx, all.Fingerprint); err == nil && left.Fingerprint != was {
		left.MinioFound, err = s.missing(ctx, replica.Written)
	}
	left.Store = s.id
	return left, err
}

// hasLateLook reports whether the plan has that check. Those of earlier EKCOs do not.
func hasLateLook(record journal.ActionRecord) bool {
	planned, is := record.Plan.Step(journal.StepDeleteMinioDeployment)
	return !record.Planned || is && planned.Does == doesLookAndDelete
}

// deleteSingleClaim is done when the claim was asked to end: it stays until the pod is gone. A claim that a new
// Deployment uses is kept.
type deleteSingleClaim struct{ *migrator }

// leftOut is why something is not done.
type leftOut struct {
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
		return leftAlone(keptUnread)
	}
	single, err := s.api.Single(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	if single.Deployment != "" {
		return leftAlone("the claim minio-pv-claim is kept: a new Deployment minio uses it")
	}
	late, err := outputOf[journal.MinioCompared](step.Action, journal.StepDeleteMinioDeployment)
	if err != nil {
		return actions.Proof{}, err
	}
	if hasLateLook(step.Action) && !late.Done {
		return leftAlone("the claim minio-pv-claim is kept: another Kubernetes client deleted Deployment minio before EKCO had verified that ha-minio has all its data; delete the claim when you are sure that no data is missing")
	}
	return s.needed(ctx, step.Action)
}

// needed keeps the claim if the highly available MinIO is gone, or has other volumes: the claim may have the last copy.
func (s deleteSingleClaim) needed(ctx context.Context, record journal.ActionRecord) (actions.Proof, error) {
	live, err := s.api.Read(ctx)
	if verdict := judge(record, live, err); verdict.Kind == actions.VerdictAbandon {
		return leftAlone("the claim minio-pv-claim is kept: " + verdict.Reason)
	}
	_, was, known := storesOf(record)
	if err = errors.Join(err, known); err != nil || was == "" {
		return actions.Proof{Missing: claimExists}, err
	}
	target, err := s.target(ctx)
	if err != nil {
		return actions.Proof{}, err
	}
	defer target.Close()
	is, err := idOf(ctx, "ha-minio", target)
	if err == nil && is != was {
		return leftAlone("the claim minio-pv-claim is kept: " + otherTargetError{is, was}.Error())
	}
	return actions.Proof{Missing: claimExists}, err
}

const claimExists = "the claim of standalone MinIO still exists"

// keptUnread is why a claim is kept that may have data without a copy.
const keptUnread = "the claim minio-pv-claim is kept: it may have the last writes to standalone MinIO, which were not copied; delete it when you are sure that no data is missing"

func leftAlone(why string) (actions.Proof, error) {
	outputs, err := json.Marshal(leftOut{why})
	return actions.Proof{Done: err == nil, Outputs: outputs}, err
}

// isUnread reports whether the Service selects the highly available MinIO after a switch without the last writes to
// standalone MinIO.
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
	return nil, kube.Deleted(s.api.DeleteSingleClaim(ctx, plan.Claim))
}
