package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	actionsbalancer "github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/internal/kubeconfig"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// follow prints the events of the change until the change ends.
func (c *changer) follow(ctx context.Context) error {
	events, stop := readEvents(ctx, c.operator, journal.Query{Action: c.action, After: c.last})
	defer stop()
	for c.ended == nil {
		select {
		case next := <-events:
			if next.err != nil {
				return next.err
			}
			c.last = max(c.last, next.event.Seq)
			if err := c.handleEvent(next.event); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *changer) handleEvent(event journal.Event) error {
	decoded := event.Decoded()
	switch p := decoded.Body.(type) {
	case *journal.ActionPlanned:
		if err := json.Unmarshal(p.Plan.Facts, &c.facts); err != nil {
			return fmt.Errorf("read the facts of %s: %w", c.action, err)
		}
		c.activity = "working"
		c.print("%s", words.Count(len(c.facts.Nodes), "node"))
	case *journal.StepDone:
		c.printStep(p)
	case *journal.ActionHeld:
		c.activity = "waiting: " + words.Held(p.Preflight, p.Reason)
		c.printEvent(decoded)
	case *journal.ActionStalled:
		c.activity = "stalled: " + p.Reason
		c.printEvent(decoded)
	case *journal.StepFailed:
		c.printEvent(decoded)
	case *journal.ActionEnded:
		c.ended = p
	}
	return nil
}

// printStep prints the result of a finished step, if the step is about a node.
func (c *changer) printStep(done *journal.StepDone) {
	if name, serves := strings.CutPrefix(done.Step, journal.StepServeLoadBalancer+" "); serves {
		c.printBalancer(name, done.Outputs)
		return
	}
	name, is := actionsbalancer.NodeOf(done.Step)
	if !is {
		return
	}
	c.outputs[name] = done.Outputs
	changed, err := actionsbalancer.ChangedOf(journal.KubeconfigsNode{Name: name}, done.Outputs)
	switch {
	case err != nil:
		c.print("%8s  node %s: %v", c.elapsed(), name, err)
	case changed.Missing != "":
		c.print("%8s  node %s is not done: %s", c.elapsed(), name, changed.Missing)
	case changed.Gone != "":
		c.print("%8s  node %s: %s", c.elapsed(), name, changed.Gone)
	default:
		c.print("%8s  node %s: %s", c.elapsed(), name, settingsText(changed.Set))
	}
}

// printBalancer prints the result for a node's load balancer.
func (c *changer) printBalancer(name string, outputs json.RawMessage) {
	changed, err := actionsbalancer.ChangedOf(journal.KubeconfigsNode{Name: name}, outputs)
	switch {
	case err != nil:
		c.print("%8s  node %s: %v", c.elapsed(), name, err)
	case changed.Missing != "":
		c.unserved[name] = changed.Missing
		c.print("%8s  node %s: its load balancer was not verified: %s", c.elapsed(), name, changed.Missing)
	case changed.Gone == "":
		c.print("%8s  node %s: its load balancer serves", c.elapsed(), name)
	}
}

// settingsText says what was changed on a node.
func settingsText(on *journal.KubeconfigsSet) string {
	if on == nil {
		return "restarted the kubelet"
	}
	var changes []string
	for _, file := range on.Files {
		changes = append(changes, fmt.Sprintf("set %s (was %s)", file.Path, kubeconfig.Redacted(file.From)))
	}
	return strings.Join(append(changes, "restarted the kubelet"), "; ")
}
