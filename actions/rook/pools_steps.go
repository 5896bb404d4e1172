package rook

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// setNumber sets one number of a pool; the step's id is the place of the number. If the change needs the option for
// single copies, the option is on only during the change; see [singleCopy].
type setNumber struct{ parts Dependencies }

// Prove implements [actions.Step]. If the option must be restored and Ceph does not answer, the step waits, which does
// not count as a failed attempt.
func (s setNumber) Prove(ctx context.Context, step actions.StepContext) (actions.Proof, error) {
	number, err := s.read(step)
	if err != nil {
		return actions.Proof{}, err
	}
	lacks, err := s.differenceReason(ctx, number)
	if err != nil && s.parts.Removed(ctx) {
		return actions.Proof{Missing: "Ceph was removed"}, nil // the preflight handles that
	}
	if number.needsOption() && mayBeLifted(step) {
		back, backErr := isRestored(ctx, s.parts.Ceph, *number.Option)
		switch {
		case backErr != nil:
			return actions.Proof{Missing: stillOn(backErr), Waits: true}, nil
		case !back:
			return actions.Proof{Missing: singleCopies + " does not have its former value yet"}, nil
		}
	}
	return actions.Proof{Done: err == nil && lacks == "", Missing: lacks}, err
}

// Do implements [actions.Step]. It does not set a size that the pool already has, because Ceph would also reset
// min_size.
func (s setNumber) Do(ctx context.Context, step actions.StepContext) (json.RawMessage, error) {
	number, err := s.read(step)
	if err != nil {
		return nil, err
	}
	set := func() error {
		if lacks, err := s.differenceReason(ctx, number); err != nil || lacks == "" {
			return err
		}
		return s.parts.Ceph.SetPoolNumber(ctx, number.pool, number.setting, number.To, number.needsConfirmation())
	}
	defer s.parts.Changed()
	if number.needsOption() {
		return singleCopy{s, step, number}.setWithOption(ctx, set)
	}
	return nil, set()
}

// poolNumber is the number that a step sets.
type poolNumber struct {
	poolsPlan
	journal.RookNumber
	place, pool, setting string
}

func (s setNumber) read(step actions.StepContext) (number poolNumber, err error) {
	if err := step.Facts(&number.poolsPlan); err != nil {
		return number, err
	}
	number.place = step.Planned.ID
	pool, setting, is := journal.PoolNumber(number.place)
	of, planned := number.Numbers[number.place]
	if !is || !planned {
		return number, fmt.Errorf("set a number of a pool: the plan has no %s", number.place)
	}
	number.pool, number.setting, number.RookNumber = pool, setting, of
	return number, nil
}

// differenceReason returns a reason if the number differs, or "".
func (s setNumber) differenceReason(ctx context.Context, number poolNumber) (string, error) {
	live, err := livePools(ctx, s.parts.Ceph)
	return journal.RookChange{Numbers: map[string]journal.RookNumber{number.place: number.RookNumber}}.Lacks(live), err
}

// needsConfirmation reports whether Ceph requires a confirmation for a single copy.
func (n poolNumber) needsConfirmation() bool {
	return n.Sure && n.setting == journal.PoolSize && n.To == 1
}
func (n poolNumber) needsOption() bool { return n.Option != nil && n.needsConfirmation() }
