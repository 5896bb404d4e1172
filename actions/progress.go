package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Progress is how far a step has come with what takes its time, or what it waits for. It is
// for people who watch: it is in no event, and a restart forgets it.
type Progress struct {
	// Missing says what the last look for the step's proof did not find, or what holds its
	// effect.
	Missing string `json:"missing,omitempty"`
	// Foreign is set when that is in the hands of others, see [Proof]. Since is when that
	// was first missing; whoever keeps the reports fills it in.
	Foreign bool      `json:"foreign"`
	Since   time.Time `json:"since,omitzero"`
	// Done and Total count units, for example "objects"; Total is 0 while nobody
	// knows it.
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"`
	Unit  string `json:"unit,omitempty"`
	// Bytes is how much that was, 0 where it makes no sense.
	Bytes int64 `json:"bytes,omitempty"`
	// Left is how long the rest may take, 0 while nobody knows.
	Left journal.Duration `json:"left,omitzero"`
}

// Watcher is told how far a step of an action has come. It must not block, and
// is called by several steps at once.
type Watcher func(action, step string, progress Progress)

// Lacks tells whoever watches the action what the step waits for.
func (c StepContext) Lacks(missing string) {
	if missing != "" {
		c.Report(Progress{Missing: missing})
	}
}

// WaitsForOthers is Lacks for what is in the hands of others.
func (c StepContext) WaitsForOthers(missing string) {
	c.Report(Progress{Missing: missing, Foreign: true})
}

// Report tells whoever watches the action how far the step has come, as often as
// the step likes.
func (c StepContext) Report(progress Progress) {
	if c.watcher != nil {
		c.watcher(c.Action.ID, c.Planned.ID, progress)
	}
}
