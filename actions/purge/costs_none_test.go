package purge

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

// Or an administrator would have to guess whether it was looked at.
func TestAPurgeThatTakesNothingAwaySaysThat(t *testing.T) {
	record := journal.ActionRecord{Planned: true}
	record.Plan.Facts = []byte(`{"node":{"name":"w1"}}`)
	if got := (definition{}).costs(t.Context(), record); len(got) != 1 || !strings.HasPrefix(got[0], "only the Node") {
		t.Errorf("it says %q", got)
	}
}
