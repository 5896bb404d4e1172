package minio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/journal"
)

const (
	// limitFactor is how many times the limit the switch may take.
	limitFactor = 3
	// endGrace is how long the old pod has to end, pointBackTimeout how long EKCO has to point the Service back.
	endGrace         = 5 * time.Second
	pointBackTimeout = 10 * time.Second
	// podInterval is how often EKCO looks for the next pod.
	podInterval = 250 * time.Millisecond
)

// cutOver points the Service to the highly available MinIO once that has everything. During the switch clients are cut
// off: the Service selects no pods, and the pods that hold their connections are replaced by one that only EKCO can
// reach. Unless the switch succeeds, the Service selects standalone MinIO again before Do returns.
//
// Once the Service selects the highly available one there is no way back, and EKCO copies nothing more.
type cutOver struct{ *migrator }

// switchIsOpen implements [actions.StepDef.MustFinish]: while the Service selects no pods, clients have no MinIO.
func switchIsOpen(step actions.StepContext) bool {
	var state journal.MinioCutOver
	_, err := step.Output(step.Planned.ID, &state)
	return err == nil && state.Disabled
}

// Prove reports whether EKCO switched the Service. If that is not known, it did not.
func (s cutOver) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	state, err := outputOf[journal.MinioCutOver](step.Action, step.Planned.ID)
	if err != nil {
		return actions.Proof{}, err
	}
	proof := actions.Proof{Outputs: step.Action.Steps[step.Planned.ID].Outputs}
	leads, version, err := s.api.Leads(ctx)
	switch {
	case err != nil && state.Disabled:
		return actions.Proof{Missing: err.Error()}, nil
	case err != nil:
		return proof, err
	}
	switched, err := s.switched(ctx, state, leads, version)
	switch {
	case err != nil:
		return proof, err
	case !switched:
		proof.Missing = fmt.Sprintf("Service minio selects %s, and EKCO did not switch it", leads)
	case state.Forced != "":
		proof.Missing = s.connected(ctx, state)
		proof.Done = proof.Missing == ""
	default:
		proof.Done = true
	}
	if proof.Done && state.Version == "" { // EKCO was killed before it could record the version
		state.Disabled, state.Version = false, version
		proof.Outputs, err = json.Marshal(state)
	}
	return proof, err
}

// switched reports whether the Service selects the highly available MinIO because EKCO switched it: either the record
// says that the switch comes next and how it ended, or no other client has set the selector.
func (m *migrator) switched(ctx context.Context, state journal.MinioCutOver, leads journal.MinioService, version string) (bool, error) {
	if leads != journal.MinioServiceHA || !state.Switches || state.Version != "" {
		return leads == journal.MinioServiceHA && state.Switches, nil
	}
	return m.api.Ours(ctx, version)
}

// connected returns why clients may still be connected to pods that served, "" once all of these were asked to end.
func (s cutOver) connected(ctx context.Context, state journal.MinioCutOver) string {
	single, err := s.api.Single(ctx)
	if err != nil {
		return err.Error()
	}
	if left := served(single, state); len(left) > 0 {
		return "clients may still be connected to pod " + left[0].Name
	}
	return ""
}

// served returns the pods that served, still exist and were not asked to end.
func served(single minio.Single, state journal.MinioCutOver) (pods []minio.SinglePod) {
	for _, pod := range single.Own() {
		if slices.Contains(state.Pods, pod.UID) && pod.State != journal.MinioPodEnds {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (s cutOver) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	attempt := &attempt{migrator: s.migrator, step: step}
	if err := attempt.load(); err != nil {
		attempt.state.Disabled = true // it may be, and nothing else would point it back
		_, unknown := attempt.point(ctx)
		return nil, errors.Join(err, unknown)
	}
	if err := attempt.caught(ctx); err != nil {
		return attempt.back(ctx, err)
	}
	s.changed()
	return attempt.outputs()
}
