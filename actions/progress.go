package actions

import (
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// Progress is the progress of a step, or what it waits for. It is for persons who watch the action. EKCO keeps it only
// in memory, so it is lost at a restart.
type Progress struct {
	// Missing describes what the last verification of the step did not find, or why its effect waits.
	Missing string `json:"missing,omitempty"`
	// NeedsOthers is true if another program must do the missing part; see [Proof]. Since is when it was first missing;
	// the caller that keeps the reports sets it.
	NeedsOthers bool      `json:"foreign"`
	Since       time.Time `json:"since,omitzero"`
	// Done and Total count units, for example "objects"; Total is 0 if unknown.
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"`
	Unit  string `json:"unit,omitempty"`
	// Bytes is the total size of the done units; 0 if the units have no size.
	Bytes int64 `json:"bytes,omitempty"`
	// Left is the estimated remaining time; 0 if unknown.
	Left journal.Duration `json:"left,omitzero"`
}

// Watcher receives the progress of a step. It must not block. Several steps may call it at the same time.
type Watcher func(action, step string, progress Progress)

// ReportMissing reports what the step waits for.
func (c StepContext) ReportMissing(missing string) {
	if missing != "" {
		c.Report(Progress{Missing: missing})
	}
}

// WaitsForOthers is [StepContext.ReportMissing] for work that another program or a person must do.
func (c StepContext) WaitsForOthers(missing string) {
	c.Report(Progress{Missing: missing, NeedsOthers: true})
}

// Report reports the step's progress. A step may call it often.
func (c StepContext) Report(progress Progress) {
	if c.watcher != nil {
		c.watcher(c.Action.ID, c.Planned.ID, progress)
	}
}
