package hosttask_test

import (
	"context"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// taken are domains that another action has.
type taken struct{}

func (taken) Take(_ context.Context, claim fsm.Claim) (fsm.Taken, bool, error) {
	return fsm.Taken{By: "update-load-balancer-1", Step: "write", Domain: claim.Domains[0]}, false, nil
}

func (taken) Leave(string, string) {}

// TestALostNodeIsAnOutcomeThoughAnotherActionHasItsDomain: the task of that action may end minutes later.
func TestALostNodeIsAnOutcomeThoughAnotherActionHasItsDomain(t *testing.T) {
	for name, test := range map[string]struct {
		partial bool
		changes func(e *estate)
		ended   string // "" for never
	}{
		"not ready":                    {true, func(e *estate) { e.Taint("a", journal.TaintNotReady) }, "ended done node a is not ready"},
		"ready":                        {true, func(*estate) {}, ""},
		"gone":                         {true, func(e *estate) { e.Delete("a") }, ""},
		"not ready, but is waited for": {false, func(e *estate) { e.Taint("a", journal.TaintNotReady) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := newEstate(w, "a")
				e.partial, e.domains = test.partial, []string{journal.DomainHost("a")}
				test.changes(e)
				e.ask()
				cfg := e.config()
				cfg.Domains = taken{}
				r := e.Start(cfg)
				e.Pass(time.Minute)
				if test.ended == "" {
					if hold := e.Record().Holds["paint a"]; hold.Preflight != actions.HoldDomains || len(e.Events()) > 5 {
						t.Errorf("it is held by %+v; %q", hold, e.Story())
					}
					r.Halt()
					return
				}
				r.End()
				if got, want := e.outcomes(), "a node a is not ready (0 pods); 0 left"; got != want || e.LastLine() != test.ended {
					t.Errorf("it is %s, %q", got, e.LastLine())
				}
				for _, event := range e.Events() {
					if done, is := event.Decoded().Body.(*journal.StepDone); is && done.Step == "paint a" {
						if how, _ := words.NotDone(done); how != "not done" {
							t.Errorf("it is %q", how)
						}
					}
				}
				e.clean()
			})
		})
	}
}

// TestAHeldTaskOnALostNodeDoesNotEnd: it waits for no domain, and the node may be back before the hold ends.
func TestAHeldTaskOnALostNodeDoesNotEnd(t *testing.T) {
	for _, rule := range []string{"Paused", actions.SafeMode} {
		t.Run(rule, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				e := newEstate(w, "a")
				e.partial, e.domains = true, []string{journal.DomainHost("a")}
				e.Taint("a", journal.TaintNotReady)
				e.ask()
				cfg := e.config()
				cfg.Domains = taken{}
				r := e.Start(actionstest.With(cfg, map[string]actions.Preflight{rule: actionstest.Always(actions.Hold("not now"))}))
				e.Pass(5 * time.Minute)
				if hold := e.Record().Holds["paint a"]; hold.Preflight != rule {
					t.Errorf("it is held by %+v; %q", hold, e.Story())
				}
				r.Halt()
			})
		})
	}
}
