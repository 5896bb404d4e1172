package rook

import (
	"context"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// TestAChangeThatIsMadeDuringALookIsLookedAtAfterIt: what was read may be older than the change.
func TestAChangeThatIsMadeDuringALookIsLookedAtAfterIt(t *testing.T) {
	changes, generation, during := &Changes{}, int64(0), func() {}
	look := changes.steady(func(context.Context) (journal.RookFacts, error) {
		during()
		return journal.RookFacts{UID: "u", Generation: generation}, nil
	})
	sees := func(has, want int64) {
		t.Helper()
		generation = has
		if facts, err := look(t.Context()); err != nil || facts.Generation != want {
			t.Errorf("generation %d, %v; want %d", facts.Generation, err, want)
		}
	}
	sees(1, 1)
	during = changes.Look
	sees(2, 1) // the status was written, as far as the look can tell
	during = func() {}
	sees(4, 4)
	sees(5, 4)
}
