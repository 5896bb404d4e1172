package observerstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Paper is a Recorder that keeps the drafts.
type Paper struct {
	mu   sync.Mutex
	read int

	// Batches has the written drafts. Tries is the number of calls.
	Batches [][]journal.Draft
	Tries   int
	// Broken is the error that Record returns; nil while the journal can be written.
	Broken error
	// Slow is how long Record takes.
	Slow time.Duration
}

// Record stores the drafts, or returns Broken.
func (p *Paper) Record(ctx context.Context, drafts ...journal.Draft) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Tries++
	if p.Slow > 0 {
		<-time.After(p.Slow)
	}
	if p.Broken != nil {
		return p.Broken
	}
	for _, draft := range drafts {
		if _, _, err := draft.Encode(); err != nil {
			return err
		}
	}
	p.Batches = append(p.Batches, slices.Clone(drafts))
	return nil
}

// BreakWith sets the error that Record returns; nil means none.
func (p *Paper) BreakWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Broken = err
}

// Drafts returns the drafts since the last call.
func (p *Paper) Drafts() []journal.Draft {
	p.mu.Lock()
	defer p.mu.Unlock()
	drafts := slices.Concat(p.Batches[p.read:]...)
	p.read = len(p.Batches)
	return drafts
}

// Take returns the drafts since the last call, one line each.
func (p *Paper) Take() []string {
	var lines []string
	for _, draft := range p.Drafts() {
		lines = append(lines, Line(draft))
	}
	return lines
}

// Line formats a draft as one line.
func Line(d journal.Draft) string {
	parts := []string{string(d.Type), d.Subject.Name, d.Subject.UID}
	switch p := d.Payload.(type) {
	case journal.NodeObserved:
		parts = append(parts, string(p.Role))
		if since, ok := p.Unreachable(); ok {
			parts = append(parts, "unreachable since", since.Format(time.TimeOnly))
		}
		if p.Excluded {
			parts = append(parts, "excluded")
		}
		if slices.ContainsFunc(p.Taints, func(t journal.Taint) bool { return t.Key == journal.TaintUnschedulable }) {
			parts = append(parts, "cordoned")
		}
		if p.Flapping {
			parts = append(parts, "flapping")
		}
		if p.Flaps > 0 {
			parts = append(parts, fmt.Sprintf("lost %d times", p.Flaps))
		}
		if p.UnreachableFor > 0 {
			parts = append(parts, "for", time.Duration(p.UnreachableFor).Round(time.Second).String())
		}
	case journal.NodeGone:
		parts = append(parts, p.Reason)
	case journal.PodTerminating:
		parts = append(parts, "on", d.Subject.Node, p.NodeUID, "ends", p.DeletionTimestamp.Format(time.TimeOnly))
	case journal.PodGone:
		parts = append(parts, "from", d.Subject.Node, p.NodeUID)
	case journal.APILost:
		parts = append(parts, p.Error)
	case journal.APIRecovered:
		parts = append(parts, "lost at", p.LostAt.Format(time.TimeOnly))
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// Things returns the drafts about things since the last call, one line each. A line has the facts, or the reason why
// the thing is gone.
func (p *Paper) Things() []string {
	var lines []string
	for _, draft := range p.Drafts() {
		var text string
		switch payload := draft.Payload.(type) {
		case journal.ThingObserved:
			text = string(payload.Facts)
		case journal.ThingGone:
			text = "gone: " + payload.Reason
		default:
			continue
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s", draft.Subject.Kind, draft.Subject.Name, draft.Subject.UID, text))
	}
	return lines
}
