package view

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

func TestTheStatusSaysThatANodeWasNeverSeen(t *testing.T) {
	status := api.Status{Now: began, Nodes: []api.NodeStatus{
		{Name: "worker-9", UID: journal.TracedUID("worker-9"), State: fsmnode.Purging, Since: began},
	}}
	lines := nodeTable(status, false, false, style{})
	if got := lines[len(lines)-1]; !strings.HasPrefix(got, "worker-9  -") || !strings.Contains(got, "never seen by EKCO") {
		t.Errorf("the line is %q", got)
	}
}
