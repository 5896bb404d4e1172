package ring

import (
	"maps"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// progress is what steps last reported, by action and step. It is not part of the state, since decisions do not use
// it.
type progress struct {
	mu      sync.Mutex
	actions map[string]map[string]actions.Progress
	// rests has the steps whose last attempt failed while they waited for others.
	rests map[string]map[string]bool
}

// report records a step's report. A report of what it waits for does not replace its counters.
func (p *progress) report(at time.Time, action, step string, now actions.Progress) {
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
		missing, foreign := now.Missing, now.Foreign
		now = before
		now.Missing, now.Foreign = missing, foreign
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
	delete(p.rests[action], step)
}

// ended removes the report of a step that has ended. If it waited for others, its first failed attempt does not
// remove it: an attempt ends after a minute, and the wait may not.
func (p *progress) ended(event journal.Decoded) {
	switch said := event.Body.(type) {
	case *journal.StepDone:
		p.forgetStep(event.Action, said.Step)
	case *journal.StepFailed:
		if !p.rest(event.Action, said.Step) {
			p.forgetStep(event.Action, said.Step)
		}
	}
}

// rest reports whether the failed attempt waited for others, and the one before did not.
func (p *progress) rest(action, step string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.actions[action][step].Foreign || p.rests[action][step] {
		return false
	}
	if p.rests == nil {
		p.rests = make(map[string]map[string]bool)
	}
	if p.rests[action] == nil {
		p.rests[action] = make(map[string]bool)
	}
	p.rests[action][step] = true
	return true
}

func (p *progress) forgetStep(action, step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.actions[action], step)
	delete(p.rests[action], step)
}

// forget removes the reports of an action without a worker.
func (p *progress) forget(action string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.actions, action)
	delete(p.rests, action)
}

// present returns a copy; nil if there are no reports.
func (p *progress) present() map[string]map[string]actions.Progress {
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
