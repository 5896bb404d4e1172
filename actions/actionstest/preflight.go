package actionstest

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// Always returns a preflight that always gives the same verdict.
func Always(verdict actions.Verdict) actions.Preflight {
	return actions.PreflightFunc(func(context.Context, journal.ActionRecord) actions.Verdict { return verdict })
}

// Rules lists the rules for automatic actions, except [actions.SafeMode]. The list is a copy, so that tests notice if a
// rule is removed from the product's list.
func Rules() []string {
	return []string{"APIUnreachable", "Settling", "Paused", "Excluded", "StormBrake", "ReadyMinimums", "OneAtATime"}
}

// Policy returns preflights for [actions.SafeMode] and the given rules, all with the same verdict.
func Policy(verdict actions.Verdict, rules ...string) map[string]actions.Preflight {
	preflights := map[string]actions.Preflight{actions.SafeMode: Always(verdict)}
	for _, name := range rules {
		preflights[name] = Always(verdict)
	}
	return preflights
}

// With adds preflights to the config.
func With(cfg actions.Config, preflights map[string]actions.Preflight) actions.Config {
	maps.Copy(cfg.Preflights, preflights)
	return cfg
}

// SettablePreflight is a preflight that counts its calls, and whose verdict a test can change. Each of its holds has a
// different reason.
type SettablePreflight struct {
	mu      sync.Mutex
	verdict actions.Verdict
	calls   int
}

// NewPreflight returns a preflight with the given verdict.
func NewPreflight(verdict actions.Verdict) *SettablePreflight {
	return &SettablePreflight{verdict: verdict}
}

// SetVerdict sets the verdict.
func (d *SettablePreflight) SetVerdict(verdict actions.Verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verdict = verdict
}

// Calls returns the number of calls.
func (d *SettablePreflight) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Check returns the verdict that was set last.
func (d *SettablePreflight) Check(context.Context, journal.ActionRecord) actions.Verdict {
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
