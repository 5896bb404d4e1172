package actions

import (
	"context"

	"github.com/replicatedhq/ekco/journal"
)

// Progress is how far a step has come with what takes its time. It is for people
// who watch: it is in no event, and a restart forgets it.
type Progress struct {
	// Done and Total count units, for example "objects"; Total is 0 while nobody
	// knows it.
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitempty"`
	Unit  string `json:"unit"`
	// Bytes is how much that was, 0 where it makes no sense.
	Bytes int64 `json:"bytes,omitempty"`
	// Left is how long the rest may take, 0 while nobody knows.
	Left journal.Duration `json:"left,omitzero"`
}

// Watcher is told how far a step of an action has come. It must not block, and
// is called by several steps at once.
type Watcher func(action, step string, progress Progress)

type watcherKey struct{}

// Watched returns a context for [Runner.Run] under which steps report to the
// watcher.
func Watched(ctx context.Context, watcher Watcher) context.Context {
	return context.WithValue(ctx, watcherKey{}, watcher)
}

// Report tells whoever watches the action how far the step has come, as often as
// the step likes. ctx is the one that Do or Prove was given.
func (c StepContext) Report(ctx context.Context, progress Progress) {
	if watcher, watched := ctx.Value(watcherKey{}).(Watcher); watched {
		watcher(c.Action.ID, c.Planned.ID, progress)
	}
}
