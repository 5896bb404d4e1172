package ring

import (
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
)

// awaited describes what a starting ring tries to do, with the last error.
type awaited struct {
	// what is the rest of the sentence "still trying to ...".
	what string
	// err is the error of the last attempt. since is the time of the first failure.
	err   error
	since time.Time
}

// lastStartStep is the last step of a start.
const lastStartStep = "list the nodes"

func (r *Ring) recordAwaited(what string, err error) {
	now := &awaited{what: what, err: err, since: r.clock.Now()}
	if before := r.startStatus.Load(); before != nil && before.what == what && before.err != nil {
		now.since = before.since
	}
	r.startStatus.Store(now)
}

// isStarted reports whether the ring has listed the cluster's nodes.
func (r *Ring) isStarted() bool {
	select {
	case <-r.startDone:
		return true
	default:
		return false
	}
}

// startProgress returns the progress of the start, and an outage of the API that is not in the journal yet. It returns
// nil once the start is complete.
func (r *Ring) startProgress(s *fsm.State) (*api.Starting, fsm.APIState) {
	if r.isStarted() {
		return nil, s.API
	}
	starting := &api.Starting{Since: r.startedAt, To: lastStartStep}
	outage := s.API
	if !r.announced.Load() {
		// The state in the journal comes from an earlier process.
		outage = fsm.APIState{}
	}
	if a := r.startStatus.Load(); a != nil {
		starting.To = a.what
		starting.Error = shortJournalError(a.err)
		if errors.Is(a.err, kube.ErrUnavailable) {
			outage.LostAt, outage.Error = a.since, a.err.Error()
		}
	}
	return starting, outage
}

func (r *Ring) processStatus() api.OperatorStatus {
	id := r.cfg.Identity
	return api.OperatorStatus{
		Running: !r.cfg.forCommand(), PID: id.PID,
		OperatorState: fsm.OperatorState{
			Version: id.Version, Host: id.Host, StartedAt: r.startedAt, DryRun: r.cfg.Policy.DryRun, Command: id.Command,
		},
	}
}

// shortJournalError shortens an error of the journal, because the status reports the whole error anyway.
func shortJournalError(err error) string {
	if err == nil {
		return ""
	}
	if _, unwritten := errors.AsType[*trouble](err); unwritten {
		return unwritable
	}
	return err.Error()
}

// notStarted returns a text that says why the start is not complete and what to do.
func (r *Ring) notStarted(s *fsm.State) string {
	starting, outage := r.startProgress(s)
	if starting == nil {
		return ""
	}
	trouble := r.store.trouble()
	switch {
	case trouble != nil && r.cfg.forCommand():
		return "no operator runs, and this command can change nothing: " + trouble.withoutAdvice() + "; " + trouble.advice() + ", and run the command again"
	case trouble != nil:
		return trouble.Error()
	}
	who := "the operator has not seen the cluster since it started at " + stamp(r.startedAt)
	if r.cfg.forCommand() {
		who = "no operator runs, and this command cannot see the cluster"
	}
	switch {
	case !outage.LostAt.IsZero():
		return fmt.Sprintf("%s, because the Kubernetes API has not answered since %s (%s); retry when it answers", who, stamp(outage.LostAt), outage.Error)
	case starting.Error != "":
		return fmt.Sprintf("%s: it cannot %s yet (%s); retry when it can", who, starting.To, starting.Error)
	}
	return fmt.Sprintf("%s: it tries to %s; retry soon", who, starting.To)
}
