package mirror

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/replicatedhq/ekco/journal"
)

// maxSize bounds the mirror's JSON, in bytes. A ConfigMap may hold 1 MiB.
const maxSize = 900 << 10

// encode writes the content within limit bytes. To get there it leaves out,
// one after the other and only as far as needed: the ended actions, the outputs and errors of
// done steps, the plan's detail of done steps, what the request of a planned action
// lists, the answered warnings, and at last whole actions, expendable ones before
// others and young before old. What was left out is said in the content.
func encode(content Content, limit int, expendable []journal.ActionKind) ([]byte, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode the mirror: %w", err)
	}
	if len(raw) < limit {
		return raw, nil
	}
	if len(content.Ended) > 0 { // without them, nothing of another journal is superseded
		content.Ended, content.Trimmed = nil, append(content.Trimmed, "ended actions")
	}
	if raw, err = json.Marshal(content); err != nil {
		return nil, fmt.Errorf("encode the mirror: %w", err)
	}
	if len(raw) < limit {
		return raw, nil
	}
	content.Actions = slices.Clone(content.Actions)
	slices.SortStableFunc(content.Actions, byWeight(expendable))
	for _, t := range trims {
		for i := range content.Actions {
			content.Actions[i] = t.trim(content.Actions[i])
		}
		content.Trimmed = append(content.Trimmed, t.what)
		if raw, err = json.Marshal(content); err != nil {
			return nil, fmt.Errorf("encode the mirror: %w", err)
		}
		if len(raw) < limit {
			return raw, nil
		}
	}
	return leaveOut(content, limit)
}

type trim struct {
	what string
	trim func(journal.ActionRecord) journal.ActionRecord
}

var trims = []trim{
	{"outputs and errors of done steps", func(r journal.ActionRecord) journal.ActionRecord {
		r.Steps = maps.Clone(r.Steps)
		for id, step := range r.Steps {
			if step.Done() {
				step.Outputs, step.LastError = nil, ""
				r.Steps[id] = step
			}
		}
		return r
	}},
	{"plan details of done steps", func(r journal.ActionRecord) journal.ActionRecord {
		r.Plan.Steps = slices.Clone(r.Plan.Steps)
		for i, step := range r.Plan.Steps {
			if r.Steps[step.ID].Done() {
				step.Input, step.Preflights = nil, nil
				r.Plan.Steps[i] = step
			}
		}
		return r
	}},
	{"what requests of planned actions list", func(r journal.ActionRecord) journal.ActionRecord {
		if r.Planned {
			r.Request = r.Request.Shortened()
		}
		return r
	}},
	// Without them, a person is asked once more.
	{"warnings that were answered", func(r journal.ActionRecord) journal.ActionRecord {
		r.Warned = nil
		return r
	}},
}

// byWeight puts first what must not be lost.
func byWeight(expendable []journal.ActionKind) func(x, y journal.ActionRecord) int {
	rank := func(r journal.ActionRecord) int { return count(slices.Contains(expendable, r.Kind)) }
	return func(x, y journal.ActionRecord) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), x.RequestedAt.Compare(y.RequestedAt), cmp.Compare(x.ID, y.ID))
	}
}

// leaveOut keeps, in order, the actions that find space.
func leaveOut(content Content, limit int) ([]byte, error) {
	actions := content.Actions
	content.Actions = []journal.ActionRecord{}
	ids := make([]string, len(actions))
	for i, action := range actions {
		ids[i] = action.ID
	}
	content.LeftOut = ids
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode the mirror: %w", err)
	}
	room := limit - len(raw)
	content.LeftOut = nil
	for _, action := range actions {
		one, err := json.Marshal(action)
		if err != nil {
			return nil, fmt.Errorf("encode action %s for the mirror: %w", action.ID, err)
		}
		if len(one) >= room {
			content.LeftOut = append(content.LeftOut, action.ID)
			continue
		}
		room -= len(one) + len(",")
		content.Actions = append(content.Actions, action)
	}
	return json.Marshal(content)
}
