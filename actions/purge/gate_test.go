package purge_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/purge"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
)

// asking are the requests of which a person's ends where EKCO's own waits.
var asking = map[string]journal.ActionRequested{"automatic": {}, "by hand": {Manual: true}}

// heldBehindCheck is a config in which nothing may start once check is done,
// until open is set.
func (s *whole) heldBehindCheck() (cfg actions.Config, open *atomic.Bool) {
	cfg, open = s.cfg(), new(atomic.Bool)
	cfg.Preflights["OneAtATime"] = actions.PreflightFunc(func(_ context.Context, record journal.ActionRecord) actions.Verdict {
		if record.Steps["check"].Done() && !open.Load() {
			return actions.Hold("another purge comes first")
		}
		return actions.Pass()
	})
	return cfg, open
}

func TestTheGateIsAskedAgainBeforeTheFirstStepThatDestroysHoweverMuchLaterThatIs(t *testing.T) {
	for name, request := range asking {
		for _, restarted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", restarted"}[restarted], func(t *testing.T) {
				inWhole(t, func(t *testing.T, s *whole) {
					cfg, open := s.heldBehindCheck()
					s.ask(request)
					r := s.Start(cfg)
					s.Pass(2 * time.Hour)
					if s.Count("done check") != 1 || s.Count("held") == 0 {
						t.Fatalf("it does not wait behind check: %q", s.Story())
					}
					other := s.lonely()
					if restarted {
						r.Halt()
					}
					open.Store(true)
					if restarted {
						r = s.Start(cfg)
					}
					s.Pass(time.Hour)
					s.wantAll()
					if request.Manual {
						if last := s.LastLine(); !strings.HasPrefix(last, "ended abandoned") || !strings.Contains(last, "--force") {
							t.Errorf("the action %s", last)
						}
						return
					}
					for step, hold := range s.Record().Holds {
						if hold.Preflight != purge.EtcdQuorumKept {
							t.Errorf("%s is held by %+v", step, hold)
						}
					}
					s.etcd.Revive(other.ID)
					r.End()
					s.wantTraces()
				})
			})
		}
	}
}

func TestTheGateIsNotAskedTwiceByAPurgeThatGoesOnAtOnce(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ceph.SetLatency(time.Second)
		s.ask(journal.ActionRequested{Manual: true})
		s.RunToEnd(s.cfg())
		if waited := s.startOf("delete-node").Sub(s.startOf("check")); waited >= time.Second {
			t.Errorf("Ceph was asked again: delete-node began %s after check", waited)
		}
	})
}

// startOf returns when a step was first started.
func (w *world) startOf(step string) time.Time {
	w.T.Helper()
	for _, event := range w.Events() {
		payload, err := event.Decode()
		if err != nil {
			w.T.Fatal(err)
		}
		if started, ok := payload.(*journal.StepStarted); ok && started.Step == step {
			return event.Time
		}
	}
	w.T.Fatalf("step %s was never started: %q", step, w.Story())
	return time.Time{}
}

func TestQuorumIsAskedBeforeTheNodeOfAPrimaryIsDeletedAlsoWhenItsOSDsAreGoneForDays(t *testing.T) {
	for name, request := range asking {
		t.Run(name, func(t *testing.T) {
			inWhole(t, func(t *testing.T, s *whole) {
				s.Cluster.Forbid(kubesim.DeleteNodes)
				s.ask(request)
				s.dropGuard("delete-node", purge.EtcdQuorumKept) // as in plans of older versions
				r := s.Start(s.cfg())
				s.Pass(72 * time.Hour)
				s.wantTraces("node", "etcd member", "kubeadm endpoint")
				other := s.lonely()
				s.Cluster.Allow(kubesim.DeleteNodes)
				s.Retry(r)
				s.Pass(time.Hour)
				s.wantTraces("node", "etcd member", "kubeadm endpoint")
				if hold := s.Record().Holds["delete-node"]; hold.Preflight != purge.EtcdQuorumKept {
					t.Errorf("held by %+v", hold)
				}
				s.etcd.Revive(other.ID)
				r.End()
				s.wantTraces()
			})
		})
	}
}

// dropGuard plans the purge that was asked for, with a step that does not list
// that guard.
func (s *whole) dropGuard(step, guard string) {
	s.T.Helper()
	s.planAs(func(planned *journal.PlannedStep) {
		if planned.ID == step {
			planned.Preflights = without(planned.Preflights, guard)
		}
	})
}

// planAs plans the purge that was asked for, with other steps.
func (s *whole) planAs(alter func(planned *journal.PlannedStep)) {
	s.T.Helper()
	plan, _, err := actions.NewRunner(s.cfg()).Explain(s.T.Context(), s.Record())
	if err != nil {
		s.T.Fatal(err)
	}
	for i := range plan.Steps {
		alter(&plan.Steps[i])
	}
	s.Append("operator", journal.ActionPlanned{Plan: plan}, journal.TypeActionPlanned)
}

func TestTheGateIsAskedBeforeTheFirstChangeAndAgainBeforeTheFirstThatCannotBeUndone(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		cfg, open := s.heldBehindCheck()
		s.ask(journal.ActionRequested{})
		s.planAs(func(planned *journal.PlannedStep) {
			switch {
			case planned.ID == "remove-storage-entry":
				planned.Irreversible = false
			case planned.ID != "check":
				planned.After = append(planned.After, "remove-storage-entry")
			}
		})
		first := s.lonely()
		s.etcd.Revive(first.ID)
		r := s.Start(cfg)
		s.Pass(6 * time.Hour)
		s.etcd.Kill(first.ID)
		open.Store(true)
		s.Pass(time.Hour)
		s.wantAll()
		s.rook.AfterEffect = func(string) { s.etcd.Kill(first.ID); open.Store(false) }
		s.etcd.Revive(first.ID)
		s.Pass(time.Hour)
		open.Store(true)
		s.Pass(time.Hour)
		if got := s.traces(); len(got) != 10 {
			t.Errorf("left are %q, want all but the storage entry", got)
		}
		s.rook.AfterEffect = nil
		s.etcd.Revive(first.ID)
		r.End()
		s.wantTraces()
	})
}

func without(names []string, name string) (others []string) {
	for _, n := range names {
		if n != name {
			others = append(others, n)
		}
	}
	return others
}
