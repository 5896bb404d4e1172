package loadbalancer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

// Changed is what a change has come to on a node.
type Changed struct {
	journal.KubeconfigsNode
	// Set is what was set; nil if nothing was.
	Set *journal.KubeconfigsSet
	// Missing says why it was not, Gone why nothing was to be done: there is no such node any more.
	Missing, Gone string
	// Over is set when it is one of these.
	Over bool
}

// ChangedOf returns what a change has come to on a node, by what is on record of its step.
func ChangedOf(node journal.KubeconfigsNode, outputs json.RawMessage) (Changed, error) {
	changed := Changed{KubeconfigsNode: node}
	if len(outputs) == 0 {
		return changed, nil
	}
	var outcome hosttask.Outcome
	if err := json.Unmarshal(outputs, &outcome); err != nil {
		return changed, fmt.Errorf("read what came of node %s: %w", node.Name, err)
	}
	changed.Over, changed.Missing = true, outcome.Missing
	if outcome.Missing == "" {
		changed.Gone = outcome.Left
	}
	if len(outcome.Result) > 0 {
		changed.Set = &journal.KubeconfigsSet{}
		if err := json.Unmarshal(outcome.Result, changed.Set); err != nil {
			return changed, fmt.Errorf("read what came of node %s: %w", node.Name, err)
		}
	}
	return changed, nil
}

// NodeOf returns the node whose kubeconfigs a step sets, and whether it does.
func NodeOf(step string) (node string, is bool) {
	return strings.CutPrefix(step, journal.StepSetKubeconfigs+" ")
}
