package ring

import (
	"errors"
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/kube"
)

// awaited is what a starting ring tries to do, and its last error.
type awaited struct {
	// what completes "still trying to".
	what string
	// err is the error of the last attempt, since the time of the first failure.
	err   error
	since time.Time
}

// listing is the last thing that a start waits for.
const listing = "list the nodes"

// await records the state of the start.
func (r *Ring) await(what string, err error) {
	now := &awaited{what: what, err: err, since: r.clock.Now()}
	if before := r.awaits.Load(); before != nil && before.what == what && before.err != nil {
		now.since = before.since
	}
	r.awaits.Store(now)
}

// started reports whether the ring has seen the cluster.
func (r *Ring) started() bool {
	select {
	case <-r.identified:
		return true
	default:
		return false
	}
}

// starting returns the progress of the start, and an outage of the API that the journal does not have yet; nil once
// the ring has seen the cluster.
func (r *Ring) starting(s *fsm.State) (*api.Starting, fsm.APIState) {
	if r.started() {
		return nil, s.API
	}
	starting := &api.Starting{Since: r.began, To: listing}
	outage := s.API
	if !r.announced.Load() {
		// The journal's state is that of an earlier process.
		outage = fsm.APIState{}
	}
	if a := r.awaits.Load(); a != nil {
		starting.To = a.what
		starting.Error = inShort(a.err)
		if errors.Is(a.err, kube.ErrUnavailable) {
			outage.LostAt, outage.Error = a.since, a.err.Error()
		}
	}
	return starting, outage
}

// process describes this process.
func (r *Ring) process() api.OperatorStatus {
	id := r.cfg.Identity
	return api.OperatorStatus{
		Running: !r.cfg.forCommand(), PID: id.PID,
		OperatorState: fsm.OperatorState{
			Version: id.Version, Host: id.Host, StartedAt: r.began, DryRun: r.cfg.Policy.DryRun, Command: id.Command,
		},
	}
}

// inShort shortens an error of the journal, which the status reports anyway.
func inShort(err error) string {
	if err == nil {
		return ""
	}
	if _, unwritten := errors.AsType[*trouble](err); unwritten {
		return unwritable
	}
	return err.Error()
}

// notStarted says why the ring has not seen the cluster, and what to do.
func (r *Ring) notStarted(s *fsm.State) string {
	starting, outage := r.starting(s)
	if starting == nil {
		return ""
	}
	trouble := r.store.trouble()
	switch {
	case trouble != nil && r.cfg.forCommand():
		return "no operator runs, and this command can change nothing: " + trouble.what() + "; free space on its file system, or make it writable again, and run the command again"
	case trouble != nil:
		return trouble.Error()
	}
	who := "the operator has not seen the cluster since it started at " + stamp(r.began)
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
