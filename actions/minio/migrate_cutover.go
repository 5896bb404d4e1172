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
	// limitFactor times the limit is the maximum time of a switch.
	limitFactor = 3
	// endGrace is the grace period of the old pod. pointBackTimeout limits how long EKCO tries to point the Service
	// back.
	endGrace         = 5 * time.Second
	pointBackTimeout = 10 * time.Second
	// podInterval is how often EKCO checks whether the next pod runs.
	podInterval = 250 * time.Millisecond
)

// cutOver points the Service to the highly available MinIO when that MinIO has all data. During the switch clients are
// cut off: the Service selects no pods, and EKCO replaces the pods to which clients are connected with a pod that only
// EKCO can reach. If the switch fails, the Service selects standalone MinIO again before Do returns.
//
// After the Service selects the highly available MinIO, EKCO neither switches back nor copies anything.
type cutOver struct{ *migrator }

// switchIsOpen implements [actions.StepDef.MustFinish]: while the Service selects no pods, clients have no MinIO.
func switchIsOpen(step actions.StepContext) bool {
	var state journal.MinioCutOver
	_, err := step.Output(step.Planned.ID, &state)
	return err == nil && state.Disabled
}

// Prove reports whether EKCO switched the Service. If that is unknown, it reports that the step is not done.
func (s cutOver) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	state, err := outputOf[journal.MinioCutOver](step.Action, step.Planned.ID)
	if err != nil {
		return actions.Proof{}, err
	}
	proof := actions.Proof{Outputs: step.Action.Steps[step.Planned.ID].Outputs}
	selected, version, err := s.api.ServiceTarget(ctx)
	switch {
	case err != nil && state.Disabled:
		return actions.Proof{Missing: err.Error()}, nil
	case err != nil:
		return proof, err
	}
	switched, err := s.hasSwitched(ctx, state, selected, version)
	switch {
	case err != nil:
		return proof, err
	case !switched:
		proof.Missing = fmt.Sprintf("Service minio selects %s, and EKCO did not switch it", selected)
	case state.Forced != "":
		proof.Missing = s.connectedReason(ctx, state)
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

// hasSwitched reports whether the Service selects the highly available MinIO because EKCO switched it. That is so if
// the record has the resource version of the switch, or if the record announces the switch and the last client that set
// the selector was EKCO.
func (m *migrator) hasSwitched(ctx context.Context, state journal.MinioCutOver, selected journal.MinioService, version string) (bool, error) {
	if selected != journal.MinioServiceHA || !state.Switches || state.Version != "" {
		return selected == journal.MinioServiceHA && state.Switches, nil
	}
	return m.api.LastSetByEKCO(ctx, version)
}

// connectedReason returns a reason if clients may still be connected to pods that served, and "" when all these pods
// are being deleted.
func (s cutOver) connectedReason(ctx context.Context, state journal.MinioCutOver) string {
	single, err := s.api.Single(ctx)
	if err != nil {
		return err.Error()
	}
	if left := servedPods(single, state); len(left) > 0 {
		return "clients may still be connected to pod " + left[0].Name
	}
	return ""
}

// servedPods returns the pods that served, still exist and are not being deleted.
func servedPods(single minio.Single, state journal.MinioCutOver) (pods []minio.SinglePod) {
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
		attempt.state.Disabled = true // it may be disabled, and nothing else would point it back
		_, unknown := attempt.pointBackUntilDone(ctx)
		return nil, errors.Join(err, unknown)
	}
	if err := attempt.makeSwitchCatchingPanic(ctx); err != nil {
		return attempt.switchBack(ctx, err)
	}
	s.changed()
	return attempt.outputs()
}
