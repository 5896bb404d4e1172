package actionstest

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// Always is a preflight with one answer.
func Always(verdict actions.Verdict) actions.Preflight {
	return actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict { return verdict })
}

// Rules lists what keeps EKCO from going on by itself, besides [actions.SafeMode]. It is
// written out here, so that a rule which is dropped from the list that is tested does
// not leave the tests with it.
func Rules() []string {
	return []string{"APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake", "ReadyMinimums", "OneAtATime"}
}

// Policy returns the preflights that the product's wiring supplies, all with the
// same answer: [actions.SafeMode] and these rules.
func Policy(verdict actions.Verdict, rules ...string) map[string]actions.Preflight {
	preflights := map[string]actions.Preflight{actions.SafeMode: Always(verdict)}
	for _, name := range rules {
		preflights[name] = Always(verdict)
	}
	return preflights
}

// With adds to the config's preflights, in which all of policy passes.
func With(cfg actions.Config, preflights map[string]actions.Preflight) actions.Config {
	maps.Copy(cfg.Preflights, preflights)
	return cfg
}

// Dial is a preflight whose answer can be turned, and which counts its calls. The
// reason of its holds differs each time.
type Dial struct {
	mu      sync.Mutex
	verdict actions.Verdict
	calls   int
}

// Answering returns a dial with that answer.
func Answering(verdict actions.Verdict) *Dial { return &Dial{verdict: verdict} }

// Turn sets the answer.
func (d *Dial) Turn(verdict actions.Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verdict = verdict
}

// Called returns how often it was asked.
func (d *Dial) Called() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Check answers.
func (d *Dial) Check(context.Context, journal.ActionRecord) actions.Verdict {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.verdict.Kind == actions.VerdictHold {
		hold := actions.Hold(fmt.Sprintf("%s (%d)", d.verdict.Reason, d.calls)).About(d.verdict.Reason)
		hold.Brief = d.verdict.Brief
		return hold
	}
	return d.verdict
}
