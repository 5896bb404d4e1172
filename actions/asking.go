package actions

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// slowLook is how long a look at the world may take before it is put on record what it
// waits for: most take a moment, and an action that waits is never silent.
const slowLook = 5 * time.Second

// asking is a look that is under way. What it asks is safe for concurrent use; the rest is
// the owner's.
type asking struct {
	since time.Time
	// group is nil for planning, step that under which the wait is recorded.
	group *group
	step  string
	told  bool

	mu sync.Mutex
	// open are the names of what has not been answered yet.
	open []string
}

// begin notes that something is asked, and returns what notes the answer. Nobody has to
// listen.
func (l *asking) begin(name string) (answered func()) {
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

// unanswered are the names of what has not been answered, each once.
func (l *asking) unanswered() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Sorted(slices.Values(l.open))
	return slices.Compact(names)
}

// asks notes that a look begins.
func (a *run) asks(g *group, step string) *asking {
	l := &asking{since: time.Now(), group: g, step: step}
	a.askings = append(a.askings, l)
	return l
}

// asked notes that a look is over.
func (a *run) asked(l *asking) {
	a.askings = slices.DeleteFunc(a.askings, func(one *asking) bool { return one == l })
}

// tellSlow holds the steps whose looks take long with what these wait for, and returns when
// the next one may have to be told. What is held already is seen to wait.
func (a *run) tellSlow(now time.Time) (wake time.Time) {
	if a.stopping || a.ending != nil || a.record.Ended != nil {
		return time.Time{}
	}
	for _, l := range a.askings {
		if due := l.since.Add(slowLook); !l.told && now.Before(due) {
			wake = earlier(wake, due)
		} else if !l.told {
			l.told = true
			a.tellAsking(l)
		}
	}
	return wake
}

func (a *run) tellAsking(l *asking) {
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
