package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

const (
	// lookTimeout bounds a look at any number of objects.
	lookTimeout = 24 * time.Hour
	// lookedWithin is how old a look may be for a replica that runs to be taken away.
	lookedWithin = 30 * time.Minute
)

// lookThrough has MinIO look whether all it keeps is on all drives, and make it so. That MinIO
// restores nothing any more does not say that: on a busy machine it was seen to call a new
// drive restored that had 16 of 200 objects. It changes nothing but for the better, so that
// it can be done again at any time.
type lookThrough struct {
	api    minio.API
	looker minio.Looker
}

// Interruptible implements [actions.InterruptibleStep].
func (lookThrough) Interruptible() bool { return true }

func (lookThrough) Prove(_ context.Context, step actions.StepContext) (actions.Proof, error) {
	var found journal.MinioLooked
	_, err := step.Output(step.Planned.ID, &found)
	return actions.Proof{
		Done: !found.At.IsZero(), Missing: "all data is not known to be on all drives of MinIO",
		Outputs: step.Action.Steps[step.Planned.ID].Outputs,
	}, err
}

// Do looks twice where something is lacking: what was written or removed just then lacks
// nothing the second time.
func (s lookThrough) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	switch gone, err := s.gone(ctx, step.Action); {
	case err != nil:
		return nil, notLooked(err)
	case gone:
		return json.Marshal(journal.MinioLooked{At: time.Now().UTC()})
	}
	var lacked map[string]string
	for range 2 {
		pass, err := s.pass(ctx, step)
		if err != nil {
			return nil, notLooked(err)
		}
		lacked = staying(lacked, pass.Lacking)
		if pass.More == 0 && len(lacked) == 0 {
			return json.Marshal(journal.MinioLooked{At: time.Now().UTC(), Items: pass.Items})
		}
		if pass.More > 0 {
			lacked = nil // what was not named may lack something the next time too
		}
	}
	return nil, &actions.UnfinishedError{Left: incomplete(lacked), Waits: true}
}

// gone reports whether there is no such MinIO any more, which has nothing to look at.
func (s lookThrough) gone(ctx context.Context, record journal.ActionRecord) (bool, error) {
	live, err := s.api.Read(ctx)
	if errors.Is(kube.Sentinel(err), kube.ErrNotFound) {
		return true, nil
	}
	return err == nil && live.UID != record.Subject.UID, err
}

func (s lookThrough) pass(ctx context.Context, step actions.StepContext) (s3.HealPass, error) {
	addresses, err := s.api.Targets(ctx)
	if err != nil {
		return s3.HealPass{}, err
	}
	credentials, err := s.api.Credentials(ctx)
	if err != nil {
		return s3.HealPass{}, err
	}
	pass, err := s.looker.LookThrough(ctx, addresses, credentials, func(items int64) {
		step.Report(actions.Progress{Done: items, Unit: "things", Missing: "MinIO looks whether all data is on all drives"})
	})
	if err != nil {
		return s3.HealPass{}, sideError{"ha-minio", err}
	}
	return pass, nil
}

// notLooked makes of a MinIO that could not look something that is waited for.
func notLooked(err error) error {
	return &actions.UnfinishedError{Left: "whether all data is on all drives of MinIO is not known: " + err.Error(), Waits: true}
}

// staying are the things that lack something now and did before; all that do now where
// nothing is known of before.
func staying(before, now map[string]string) map[string]string {
	if before == nil {
		return now
	}
	stays := maps.Clone(now)
	maps.DeleteFunc(stays, func(name, _ string) bool { _, did := before[name]; return !did })
	return stays
}

// incomplete says what is not on all drives.
func incomplete(lacking map[string]string) string {
	names := slices.Sorted(maps.Keys(lacking))
	if len(names) == 0 {
		return "more changes in MinIO than can be told from what is not on all drives; tried again when fewer clients write"
	}
	return fmt.Sprintf("not all data is on all drives of MinIO, although it tried to restore that: %s, such as %s: %s; look at that drive, and at the log of its server; no replica is moved until then",
		words.Count(len(names), "thing"), names[0], lacking[names[0]])
}

// looked judges whether MinIO was found to have all data on all drives just before a replica
// that runs is taken away.
func looked(record journal.ActionRecord) actions.Verdict {
	looks := slices.ContainsFunc(record.Plan.Steps, func(step journal.PlannedStep) bool { return step.ID == journal.StepLookBeforeMinio })
	found, err := outputOf[journal.MinioLooked](record, journal.StepLookBeforeMinio)
	switch age := time.Since(found.At); {
	case record.PastNoReturn:
		return actions.Pass()
	case err != nil:
		return actions.Hold(err.Error()).About("unread")
	case record.Planned && !looks:
		return actions.Abandon("an earlier EKCO planned it, which did not look whether all data is on all drives of MinIO").About("unlooked")
	case found.At.IsZero():
		return actions.Pass() // the step that looks comes first
	case age > lookedWithin || age < -time.Minute:
		return actions.Abandon(fmt.Sprintf("since MinIO looked whether all data is on all drives, %s have passed; it begins anew", age.Round(time.Minute))).About("stale")
	}
	return actions.Pass()
}
