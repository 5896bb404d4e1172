package ring

import (
	"maps"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
)

// progress is how far the steps under way have come, by action and step, as they
// last reported. Nothing is decided by it, so it is no part of the state.
type progress struct {
	mu      sync.Mutex
	actions map[string]map[string]actions.Progress
	// rests are the steps whose last attempt failed while they waited for others.
	rests map[string]map[string]bool
}

// report notes what a step has reported at that time. What a step waits for stands beside how far it is.
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

// ended forgets what a step reported that has ended. That it waits for others stays until an
// attempt has ended without: an attempt is over after a minute, and what holds the step is not.
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

// rest reports whether the attempt that failed waited for others.
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

// forget forgets an action that nobody works on.
func (p *progress) forget(action string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.actions, action)
	delete(p.rests, action)
}

// present returns a copy; nil if there is nothing to tell.
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
