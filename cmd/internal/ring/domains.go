package ring

import (
	"cmp"
	"context"
	"errors"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// lockManager implements actions.Domains. It takes locks in the loop, which owns the state.
type lockManager struct{ ring *Ring }

// Take implements actions.Domains.
func (m lockManager) Take(ctx context.Context, claim fsm.Claim) (taken fsm.Taken, ok bool, err error) {
	var unrecordedJump error
	err = m.ring.ask(ctx, func(s *fsm.State) {
		switch unrecordedJump = m.ring.unrecordedJump; {
		case unrecordedJump != nil:
		case s.Journal.SafeMode():
			ok = true // in safe mode, actions that have locks do not continue
		default:
			taken, ok = m.ring.domains.Take(s, m.ring.clock.Now(), claim)
			taken.Stuck = cmp.Or(taken.Stuck, m.ring.notContinuedReason(taken))
		}
	})
	if err = errors.Join(err, unrecordedJump); err != nil {
		return fsm.Taken{}, false, err
	}
	return taken, ok, nil
}

// notContinuedReason returns the reason why this ring does not continue the step that has the lock, or "".
func (r *Ring) notContinuedReason(taken fsm.Taken) string {
	if taken.Step == "" || !r.cfg.forCommand() || r.admitted[taken.By] {
		return ""
	}
	return "no operator runs, and a command continues only its own action; start the operator"
}

// Leave implements actions.Domains. It ignores errors, because locks do not matter after the loop has ended.
func (m lockManager) Leave(action, step string) {
	_ = m.ring.do(context.Background(), func(*fsm.State) { m.ring.domains.Leave(action, step) })
}

// updateLocksAtStepStart updates the locks when the start of a step is recorded.
func (r *Ring) updateLocksAtStepStart(event journal.Decoded) {
	if began, ok := event.Body.(*journal.StepStarted); ok {
		r.domains.Began(event.Action, began.Step)
	}
}

// wakeNext wakes the actions that can take their locks now.
func (r *Ring) wakeNext() {
	for _, action := range r.domains.NewlyGrantable(r.state, r.clock.Now()) {
		if w := r.workers[action]; w != nil {
			w.inbox.Recheck()
		}
	}
}
