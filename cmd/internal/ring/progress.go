package ring

import (
	"maps"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// stepReports has the last reports of steps, by action and step. It is not part of the state, because decisions do not
// use it.
type stepReports struct {
	mu      sync.Mutex
	actions map[string]map[string]actions.Progress
	// failedWaits has the steps whose last attempt failed while they waited for another program or a person.
	failedWaits map[string]map[string]bool
}

// report stores a step's report. A report about what the step waits for keeps the earlier counters.
func (p *stepReports) report(at time.Time, action, step string, now actions.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.actions == nil {
		p.actions = make(map[string]map[string]actions.Progress)
	}
	if p.actions[action] == nil {
		p.actions[action] = make(map[string]actions.Progress)
	}
	before := p.actions[action][step]
	if now.Unit == "" {
		missing, needsOthers := now.Missing, now.NeedsOthers
		now = before
		now.Missing, now.NeedsOthers = missing, needsOthers
	}
	switch now.Missing {
	case "":
		now.Since = time.Time{}
	case before.Missing:
		now.Since = before.Since
	default:
		now.Since = at
	}
	p.actions[action][step] = now
	delete(p.failedWaits[action], step)
}

// ended removes the report of a step that has ended. If the step waited for another program or a person, it removes the
// report only after the second failed attempt: an attempt ends after a minute, but the wait may continue.
func (p *stepReports) ended(event journal.Decoded) {
	switch said := event.Body.(type) {
	case *journal.StepDone:
		p.forgetStep(event.Action, said.Step)
	case *journal.StepFailed:
		if !p.endsFirstWait(event.Action, said.Step) {
			p.forgetStep(event.Action, said.Step)
		}
	}
}

// endsFirstWait reports whether the failed attempt waited for others, and the attempt before it did not.
func (p *stepReports) endsFirstWait(action, step string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.actions[action][step].NeedsOthers || p.failedWaits[action][step] {
		return false
	}
	if p.failedWaits == nil {
		p.failedWaits = make(map[string]map[string]bool)
	}
	if p.failedWaits[action] == nil {
		p.failedWaits[action] = make(map[string]bool)
	}
	p.failedWaits[action][step] = true
	return true
}

func (p *stepReports) forgetStep(action, step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.actions[action], step)
	delete(p.failedWaits[action], step)
}

// forget removes the reports of an action that has no worker.
func (p *stepReports) forget(action string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.actions, action)
	delete(p.failedWaits, action)
}

// copyReports returns a copy of all reports, or nil if there are none.
func (p *stepReports) copyReports() map[string]map[string]actions.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	var present map[string]map[string]actions.Progress
	for action, steps := range p.actions {
		if len(steps) == 0 {
			continue
		}
		if present == nil {
			present = make(map[string]map[string]actions.Progress)
		}
		present[action] = maps.Clone(steps)
	}
	return present
}
