package minio

import (
	"context"
	"errors"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// obstacle is the reason why EKCO cannot cut clients off in the normal way, so that the switch would miss their last
// writes. An empty key means that there is no obstacle.
type obstacle struct {
	// key names the cause and the object that causes it.
	key, text string
	// unreadable is true if EKCO cannot read standalone MinIO. isTemporary is true if the obstacle is often temporary.
	unreadable, isTemporary bool
}

// keyOf returns the key of a hold for the obstacle. A force is valid for one attempt.
func (l obstacle) keyOf(state journal.MinioCutOver) string {
	return fmt.Sprintf("%s, for attempt %d", l.key, state.Forces+1)
}

// findObstacle checks whether clients can be cut off.
func (m *migrator) findObstacle(ctx context.Context, record journal.ActionRecord) (obstacle, error) {
	single, err := m.api.Single(ctx)
	if err != nil {
		return obstacle{}, err
	}
	if crowded := single.Crowded(); crowded != "" {
		return obstacle{}, crowdedError(crowded)
	}
	pod, serves := single.Serving()
	if !serves {
		return obstacle{key: "absent", text: noSourceError{single.Lacks()}.Error(), unreadable: true, isTemporary: true}, nil
	}
	both, err := m.openPod(ctx, pod, record)
	if other := (otherSourceError{}); errors.As(err, &other) {
		return obstacle{key: "other store " + other.is, text: other.Error(), unreadable: true}, nil
	}
	if err != nil {
		return obstacle{}, err
	}
	both.close()
	no, err := m.api.Successor(ctx, pod)
	if err != nil || no.Cause == "" {
		return obstacle{}, err
	}
	return obstacle{key: no.Cause, text: fmt.Sprintf("the switch has to replace pod %s of standalone MinIO, and no replacement can start: %s", pod.Name, no.Reason)}, nil
}

// mayBeReplaced implements [MinioSuccessor]: without a successor of the serving pod, cutting clients off would be an
// endless outage.
func (m *migrator) mayBeReplaced(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	cut, err := outputOf[journal.MinioCutOver](record, journal.StepCutOverMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	obstacle, err := m.findObstacle(ctx, record)
	if err != nil {
		return actions.Hold(err.Error()).About(keyOr(err, "unread"))
	}
	key := obstacle.keyOf(cut)
	if obstacle.key == "" || record.HasForced(MinioSuccessor, key) {
		return actions.Pass()
	}
	caught, err := outputOf[journal.MinioCaughtUp](record, journal.StepCatchUpMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	verdict := actions.Hold(fmt.Sprintf("%s; both MinIOs last had the same data at %s; EKCO continues automatically when this is fixed; "+
		"\"ekco retry --force %s\" switches to ha-minio once, without this check: later writes may be lost%s; the PersistentVolumeClaim of standalone MinIO is kept",
		obstacle.text, words.Stamp(caught.VerifiedAt), record.ID, setByHand(caught))).About(key)
	if obstacle.isTemporary {
		return verdict.OnceLasting(m.AbsentFor, obstacle.text+"; after that you can switch without this check")
	}
	return verdict
}
