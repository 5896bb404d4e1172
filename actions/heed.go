package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// heedWaiting heeds every signal that is waiting.
func (a *run) heedWaiting(signals <-chan Signal) error {
	for {
		select {
		case signal := <-signals:
			if err := a.heed(signal); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// heed acts on what others did.
func (a *run) heed(signal Signal) error {
	switch signal {
	case SignalJoin:
		a.record.Joined, a.shared = true, nil
		a.recheck()
		return nil
	case SignalRecheck:
		a.recheck()
		return nil
	}
	past, err := a.readHistory(a.work, a.record.ID)
	if err != nil {
		return err
	}
	a.past = past
	switch signal {
	case SignalCancel:
		a.cancel = true
		if a.unfit == "" {
			a.considerCancel()
		}
	case SignalRetry:
		a.retry()
	}
	return nil
}

// recheck cuts the rest of everything that is held short. A look that is under
// way may have seen the world as it was before, so another one follows it.
func (a *run) recheck() {
	a.planning.hurry()
	for _, g := range a.groups {
		g.hurry()
	}
}

// retry gives everything that failed or waits a new budget, at once.
func (a *run) retry() {
	if a.past.stalled > a.past.retried {
		a.log.Info("the action stalled after the retry was asked for; ask again")
		return
	}
	a.log.Info("the action is retried on request")
	fold(&a.record, journal.ActionRetried{}, time.Now())
	a.shared = nil
	clear(a.said)
	a.planning = attention{busy: a.planning.busy}
	for _, s := range a.byID {
		s.failures, s.exhausted, s.next = a.past.failures[s.planned.ID], false, time.Time{}
		s.group.heldStep, s.group.attention = "", attention{busy: s.group.busy}
	}
}
