package actions

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// slowLook is how long a check may take before EKCO records what it waits for. Most checks take a moment, and every
// longer wait of an action is recorded.
const slowLook = 5 * time.Second

// pendingCheck is a check that is running: planning, an examination of a batch, or a request for domains. begin and
// unanswered are safe for concurrent use; the rest belongs to the owner.
type pendingCheck struct {
	since time.Time
	// group is nil for planning. The wait is recorded under step.
	group *group
	step  string
	noted bool

	mu sync.Mutex
	// open names the questions that are not answered yet.
	open []string
}

// begin notes a question, and returns the function that notes its answer. l may be nil.
func (l *pendingCheck) begin(name string) (answered func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, name)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if at := slices.Index(l.open, name); at >= 0 {
			l.open = slices.Delete(l.open, at, at+1)
		}
	}
}

// unanswered returns the names of the open questions, each once.
func (l *pendingCheck) unanswered() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Sorted(slices.Values(l.open))
	return slices.Compact(names)
}

// beginCheck notes that a check begins.
func (a *run) beginCheck(g *group, step string) *pendingCheck {
	l := &pendingCheck{since: time.Now(), group: g, step: step}
	a.pendingChecks = append(a.pendingChecks, l)
	return l
}

// endCheck notes that a check is over.
func (a *run) endCheck(l *pendingCheck) {
	a.pendingChecks = slices.DeleteFunc(a.pendingChecks, func(one *pendingCheck) bool { return one == l })
}

// holdSlow holds the steps whose checks take long, with what they wait for, and returns when to call it again. A step
// that is held already stays as it is.
func (a *run) holdSlow(now time.Time) (wake time.Time) {
	if a.stopping || a.ending != nil || a.record.Ended != nil {
		return time.Time{}
	}
	for _, l := range a.pendingChecks {
		if due := l.since.Add(slowLook); !l.noted && now.Before(due) {
			wake = earlier(wake, due)
		} else if !l.noted {
			l.noted = true
			a.holdPending(l)
		}
	}
	return wake
}

func (a *run) holdPending(l *pendingCheck) {
	names := l.unanswered()
	if len(names) == 0 {
		return // the answer comes right now
	}
	if _, held := a.record.Holds[l.step]; held || l.group != nil && l.group.heldStep != "" {
		a.log.Debug("no answer yet", "step", l.step, "from", strings.Join(names, ", "), "since", l.since)
		return
	}
	if l.group != nil {
		l.group.heldStep = l.step
	}
	have := "has"
	if len(names) > 1 {
		have = "have"
	}
	reason := fmt.Sprintf("%s %s not answered within %s", strings.Join(names, ", "), have, slowLook)
	a.hold(l.step, Check{HoldAnswer, Hold(reason).About("no answer")})
}
