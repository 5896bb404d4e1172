package rookpods

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// ensureClass creates [rook.NodeCritical] if it is missing.
type ensureClass struct{ pods *rook.Pods }

func (s ensureClass) Prove(ctx context.Context, _ actions.StepContext, input journal.RookPodsInput) (actions.Proof, error) {
	there, err := s.pods.HasPriorityClass(ctx, input.Class)
	return actions.Proof{Done: there, Missing: "there is no priority class " + input.Class}, err
}

func (s ensureClass) Do(ctx context.Context, _ actions.StepContext, input journal.RookPodsInput) (json.RawMessage, error) {
	return nil, s.pods.CreatePriorityClass(ctx, input.Class)
}

// awaitHosts waits until Rook has moved the MDS.
type awaitHosts struct {
	actions.NoEffect
	pods *rook.Pods
}

func (s awaitHosts) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	live, err := s.pods.Read(ctx, step.Action.Subject)
	if err != nil {
		return actions.Proof{}, err
	}
	lacks := lacksHosts(live)
	return actions.Proof{Done: lacks == "", Missing: lacks}, nil
}

// lacksHosts returns a reason if the MDS run on too few hosts, or "".
func lacksHosts(live journal.RookPodsFacts) string {
	if len(live.Hosts) >= mdsHosts {
		return ""
	}
	where := ""
	if len(live.Hosts) > 0 {
		where = " (" + strings.Join(live.Hosts, ", ") + ")"
	}
	return fmt.Sprintf("MDS run on %s%s, want %d", words.Count(len(live.Hosts), "host"), where, mdsHosts)
}

// awaitRollout waits until the controller has rolled out the pods.
type awaitRollout struct {
	actions.NoEffect
	pods *rook.Pods
}

func (s awaitRollout) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	_, lacks, err := s.pods.RolledOut(ctx, step.Action.Subject)
	return actions.Proof{Done: err == nil && lacks == "", Missing: lacks}, err
}
