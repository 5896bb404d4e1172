package view

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/cmd/internal/api"
)

func TestThingsOfFurtherMachinesHaveATableOnceThereAreAny(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	status := api.Status{Now: now, Things: []api.ThingStatus{
		{Machine: "lamp", Name: "desk", State: "Burning", Since: now.Add(-time.Hour)},
		{Machine: "lamp", Name: "hall\x1b", State: "Gone", Since: now.Add(-time.Minute), Gone: true},
		{Machine: "lamp", Name: "yard", State: "Gone", Since: now.Add(-48 * time.Hour), Gone: true},
	}}
	few := []string{
		"", "MACHINE  THING     STATE    SINCE", "lamp     desk      Burning  1h ago", `lamp     hall\x1b  Gone     1m ago`,
		"1 thing gone for more than a day: ekco status --all",
	}
	if diff := cmp.Diff(few, thingTable(status, false, style{})); diff != "" {
		t.Error(diff)
	}
	if all := strings.Join(thingTable(status, true, style{}), "\n"); !strings.Contains(all, "yard") {
		t.Errorf("with --all: %s", all)
	}
	if lines := thingTable(api.Status{Now: now}, true, style{}); lines != nil {
		t.Errorf("of nothing it says %q", lines)
	}
}
