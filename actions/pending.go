package actions

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// slowCheckTime is how long a check may take before EKCO records what it waits for. Most checks are faster.
const slowCheckTime = 5 * time.Second

// pendingCheck is a running check: planning, an examination of a batch, or a request for domains. begin and unanswered
// are safe for concurrent use; only the owner may use the rest.
type pendingCheck struct {
	since time.Time
	// group is nil for planning. step is the name under which EKCO records the wait.
	group *group
	step  string
	noted bool

	mu sync.Mutex
	// open names the questions without an answer.
	open []string
}

// addQuestion adds a question, and returns the function that removes it when the answer arrives. l may be nil.
func (l *pendingCheck) addQuestion(name string) (answered func()) {
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

// unanswered returns the names of the open questions without duplicates.
func (l *pendingCheck) unanswered() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Sorted(slices.Values(l.open))
	return slices.Compact(names)
}

func (a *run) beginCheck(g *group, step string) *pendingCheck {
	l := &pendingCheck{since: time.Now(), group: g, step: step}
	a.pendingChecks = append(a.pendingChecks, l)
	return l
}

func (a *run) endCheck(l *pendingCheck) {
	a.pendingChecks = slices.DeleteFunc(a.pendingChecks, func(one *pendingCheck) bool { return one == l })
}

// holdSlow holds the steps whose checks take long, with the names of the open questions, except steps that are already
// held. It returns the time to call it again.
func (a *run) holdSlow(now time.Time) (wake time.Time) {
	if a.stopping || a.ending != nil || a.record.Ended != nil {
		return time.Time{}
	}
	for _, l := range a.pendingChecks {
		if due := l.since.Add(slowCheckTime); !l.noted && now.Before(due) {
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
		return // the answer is arriving now
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
	reason := fmt.Sprintf("%s %s not answered within %s", strings.Join(names, ", "), have, slowCheckTime)
	a.recordHold(l.step, Check{HoldAnswer, Hold(reason).About("no answer")})
}
