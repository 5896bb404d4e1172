package loadbalancer

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/replicatedhq/ekco/actions/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

// Changed is the result of a change on a node.
type Changed struct {
	journal.KubeconfigsNode
	// Set has the new settings; nil if nothing was set.
	Set *journal.KubeconfigsSet
	// Missing is the reason why a setting is missing. Gone is the reason if the node is gone.
	Missing, Gone string
	// Over is true if the node's step is done.
	Over bool
}

// ChangedOf decodes the result of a change on a node from the outputs of its step.
func ChangedOf(node journal.KubeconfigsNode, outputs json.RawMessage) (Changed, error) {
	changed := Changed{KubeconfigsNode: node}
	if len(outputs) == 0 {
		return changed, nil
	}
	var outcome hosttask.Outcome
	if err := json.Unmarshal(outputs, &outcome); err != nil {
		return changed, fmt.Errorf("read the outcome of node %s: %w", node.Name, err)
	}
	changed.Over, changed.Missing = true, outcome.Missing
	if outcome.Missing == "" {
		changed.Gone = outcome.Left
	}
	if len(outcome.Result) > 0 {
		changed.Set = &journal.KubeconfigsSet{}
		if err := json.Unmarshal(outcome.Result, changed.Set); err != nil {
			return changed, fmt.Errorf("read the outcome of node %s: %w", node.Name, err)
		}
	}
	return changed, nil
}

// NodeOf returns the node whose kubeconfigs a step sets. It reports false for other steps.
func NodeOf(step string) (node string, is bool) {
	return strings.CutPrefix(step, journal.StepSetKubeconfigs+" ")
}
