package purge_test

import (
	"context"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/journal"
)

// slowly passes after a time, during which something may happen.
func slowly(takes time.Duration, meanwhile func()) actions.Preflight {
	return actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict {
		<-time.After(takes)
		meanwhile()
		return actions.Pass()
	})
}

func TestANodeThatReturnsWhileAnotherPreflightIsSlowKeepsEverything(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		cfg := s.cfg()
		cfg.Preflights[actions.Mirrored] = slowly(10*time.Second, func() {
			s.Cluster.ReturnNode("w1")
			<-time.After(15 * time.Second)
		})
		s.RunToEnd(cfg)
		s.wantAll()
		if got := s.LastLine(); got != "ended abandoned node w1 answers again" {
			t.Errorf("the journal ends with %q", got)
		}
	})
}

func TestARuleOfPolicyThatChangesWhileAnotherPreflightIsSlowHolds(t *testing.T) {
	inWhole(t, func(t *testing.T, s *whole) {
		s.ask(journal.ActionRequested{})
		cfg, paused := s.cfg(), actionstest.NewPreflight(actions.Pass())
		cfg.Preflights["Paused"] = paused
		cfg.Preflights[actions.Mirrored] = slowly(10*time.Second, func() { paused.SetVerdict(actions.Hold("paused")) })
		r := s.Start(cfg)
		s.Pass(time.Minute)
		s.wantAll()
		if len(s.Record().Holds) == 0 {
			t.Errorf("nothing is held: %q", s.Story())
		}
		r.Halt()
	})
}
