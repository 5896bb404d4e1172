package ring

import (
	"cmp"
	"context"
	"errors"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// domainKeeper asks the loop, which owns the state, who may change what now.
type domainKeeper struct{ ring *Ring }

// Take implements actions.Domains.
func (k domainKeeper) Take(ctx context.Context, claim fsm.Claim) (taken fsm.Taken, ok bool, err error) {
	var adrift error
	err = k.ring.ask(ctx, func(s *fsm.State) {
		switch adrift = k.ring.adrift; {
		case adrift != nil:
		case s.Journal.SafeMode():
			ok = true // what has them does not go on
		default:
			taken, ok = k.ring.domains.Take(s, k.ring.clock.Now(), claim)
			taken.Rests = cmp.Or(taken.Rests, k.ring.rests(taken))
		}
	})
	if err = errors.Join(err, adrift); err != nil {
		return fsm.Taken{}, false, err
	}
	return taken, ok, nil
}

// rests says why this ring does not go on with the step that stands in the way, or
// returns "".
func (r *Ring) rests(taken fsm.Taken) string {
	if taken.Step == "" || !r.cfg.forCommand() || r.admitted[taken.By] {
		return ""
	}
	return "no operator runs, and a command goes on with its own action alone; start the operator"
}

// Leave implements actions.Domains. When the loop has ended, nobody else asks.
func (k domainKeeper) Leave(action, step string) {
	_ = k.ring.do(context.Background(), func(*fsm.State) { k.ring.domains.Leave(action, step) })
}

// noteBegun notes that what was let in is on record.
func (r *Ring) noteBegun(event journal.Decoded) {
	if began, ok := event.Body.(*journal.StepStarted); ok {
		r.domains.Began(event.Action, began.Step)
	}
}

// callNext tells the actions whose turn has come.
func (r *Ring) callNext() {
	for _, action := range r.domains.Called(r.state, r.clock.Now()) {
		if w := r.workers[action]; w != nil {
			w.inbox.Recheck()
		}
	}
}
