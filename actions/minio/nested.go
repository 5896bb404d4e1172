package minio

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// MinioNothingNested requires that the last check found no object below another object. It may be forced for exactly
// the objects that the check found.
const MinioNothingNested = "MinioNothingNested"

const (
	// nestedPause is the first pause after a check that found nested objects; [actions.Doubled] makes later pauses
	// longer.
	nestedPause = time.Minute
	// maxNested is the maximum number of objects that a force can release, because the reason must name all of them.
	maxNested = 99
	// unread is the suffix of a key that means that the check could not be made.
	unread = " unread"
)

// findNested searches for objects below other objects. MinIO neither copies nor restores them, so they are lost with
// their drives.
type findNested struct {
	api minio.API
	// pods returns the pods whose drives must be searched.
	pods func(ctx context.Context, record journal.ActionRecord) ([]string, error)
}

func (s findNested) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	proof, err := lastCheckProof(step)
	proof.Missing = "EKCO has not checked for objects below other objects"
	return proof, err
}

func (s findNested) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	left, err := outputOf[journal.MinioLooked](step.Action, step.Planned.ID)
	if err != nil {
		return nil, err
	}
	found, err := s.searchDrives(ctx, step.Action)
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		left.Lacks, left.Key = err.Error(), step.Planned.ID+unread
	default:
		left.Lacks, left.Key = nestedText(found), listKey([]string{step.Planned.ID, fmt.Sprintf("%q", found)})
	}
	now := time.Now().UTC()
	if left.Lacks == "" || len(found) <= maxNested && step.Action.HasForced(MinioNothingNested, left.Key) {
		return json.Marshal(journal.MinioLooked{At: now})
	}
	left.Since, left.Tries = now, left.Tries+1
	outputs, err := json.Marshal(left)
	return nil, cmp.Or[error](err, &actions.UnfinishedError{Left: left.Lacks, Waits: true, Outputs: outputs})
}

// searchDrives searches all drives, because a drive that MinIO restored lacks the objects below others. It searches one
// after the other, so that clients are not slowed down.
func (s findNested) searchDrives(ctx context.Context, record journal.ActionRecord) (all []minio.Nested, err error) {
	pods, err := s.pods(ctx, record)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		found, err := s.api.Nested(ctx, pod)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b minio.Nested) int {
		return cmp.Or(strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Key, b.Key))
	})
	return slices.Compact(all), nil
}

// nestedText returns a text that names the objects, or "" if there are none.
func nestedText(found []minio.Nested) string {
	if len(found) == 0 {
		return ""
	}
	var names []string
	for _, one := range found[:min(len(found), maxNested)] {
		names = append(names, fmt.Sprintf("%s/%s (below %s)", one.Bucket, one.Key, one.Above))
	}
	more := ""
	if len(found) > maxNested {
		more = ", and more, too many to release"
	}
	return fmt.Sprintf("%s below another object, which MinIO does not list, copy or restore: %s%s", words.Count(len(found), "object"), strings.Join(names, ", "), more)
}

// nothingNested implements [MinioNothingNested].
func nothingNested(_ context.Context, record journal.ActionRecord) actions.Verdict {
	for _, step := range []string{journal.StepLookBelowMinio, journal.StepLookBelowAgainMinio} {
		verdict := pauseAfter(record, step, nestedPause)
		if verdict.Kind == actions.VerdictPass {
			continue
		}
		if strings.HasSuffix(verdict.Key, unread) {
			verdict.Reason += fmt.Sprintf("; \"ekco retry --force %s\" continues without this check", record.ID)
			return verdict
		}
		verdict.Reason += fmt.Sprintf("; copy each to a key that is not below an object, delete it, then \"ekco retry %s\"; %s accepts the loss of what is named here", record.ID, releaseCommand(verdict.Key, record))
		return verdict.AboutList(verdict.Key)
	}
	return actions.Pass()
}

// hasNestedCheck reports whether the plan has this step. Plans of earlier EKCOs lack it.
func hasNestedCheck(record journal.ActionRecord, step string) bool {
	_, planned := record.Plan.Step(step)
	return planned || !record.Planned
}

// sourceDrive returns the pod of standalone MinIO whose drive must be searched. It returns no pod if EKCO keeps the
// claim anyway: after a switch without the last writes, or if another client deleted or replaced its Deployment.
func (m *migrator) sourceDrive(ctx context.Context, record journal.ActionRecord) ([]string, error) {
	plan, err := planOf(record)
	if err != nil {
		return nil, err
	}
	isKept, err := isUnread(record)
	if err != nil || isKept {
		return nil, err
	}
	single, err := m.api.Single(ctx)
	if err != nil || single.Deployment != plan.Deployment {
		return nil, err
	}
	pod, serves := single.Serving()
	if !serves {
		return nil, noSourceError{single.Lacks()}
	}
	return []string{pod.Name}, nil
}

// replicaDrives returns the pods of all running replicas.
func replicaDrives(api minio.API) func(context.Context, journal.ActionRecord) ([]string, error) {
	return func(ctx context.Context, _ journal.ActionRecord) (pods []string, err error) {
		running, err := api.Running(ctx)
		for _, one := range running {
			pods = append(pods, one.Name)
		}
		return pods, err
	}
}
