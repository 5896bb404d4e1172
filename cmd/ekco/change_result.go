package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	actionsbalancer "github.com/replicatedhq/ekco/actions/loadbalancer"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// remainingWorkError returns an error that lists the remaining work after the change has ended, or nil.
func (c *changer) remainingWorkError(ctx context.Context) error {
	c.noteJoined(ctx)
	if c.ended.Outcome != journal.OutcomeDone && c.ended.Outcome != journal.OutcomePartial {
		return fmt.Errorf("%s ended %s; %sto continue: %s", c.action, words.Ended(c.ended.Outcome, c.ended.Reason), c.unfinishedNodes(), c.flags.continueCommand())
	}
	left := c.unfinishedNodes()
	if left == "" && c.ended.Outcome == journal.OutcomePartial {
		left = c.ended.Reason + "; "
	}
	if left != "" {
		return fmt.Errorf("%safter repairing that, continue with: %s", left, c.flags.continueCommand())
	}
	return nil
}

// noteJoined lists the nodes that joined after the change was planned. It lists none if the operator does not answer.
func (c *changer) noteJoined(ctx context.Context) {
	status, err := c.operator.Status(ctx)
	if err != nil {
		return
	}
	for _, name := range nodeNames(status, presentNode) {
		planned := slices.ContainsFunc(c.facts.Nodes, func(node journal.KubeconfigsNode) bool { return node.Name == name })
		if !planned && !slices.Contains(c.flags.Exclude, name) {
			c.joined = append(c.joined, name)
		}
	}
}

// timeoutError returns an error that lists the remaining work when the command stops waiting.
func (c *changer) timeoutError(why string) error {
	if c.action == "" && c.requestSent {
		return fmt.Errorf("%s: %s; the operator may have begun, since it did not answer the request (see: ekco history --component kubeconfigs); to join or start the change: %s", why, c.activity, c.flags.continueCommand())
	}
	if c.action == "" {
		return fmt.Errorf("%s: %s; nothing was changed; check the operator (kubectl -n kurl get pods -l app=ekc-operator), then run: %s", why, c.activity, c.flags.continueCommand())
	}
	return fmt.Errorf("%s (%s); %sEKCO continues %s; to wait for it: %s", why, c.activity, c.unfinishedNodes(), c.action, c.flags.continueCommand())
}

// maxNamedNodes is the maximum number of nodes that the result names.
const maxNamedNodes = 10

// unfinishedNodes returns the beginning of a sentence that names the unfinished nodes with reasons, or "" if there are
// none.
func (c *changer) unfinishedNodes() string {
	var left []string
	for _, node := range c.facts.Nodes {
		changed, err := actionsbalancer.ChangedOf(node, c.outputs[node.Name])
		switch {
		case err != nil:
			left = append(left, fmt.Sprintf("%s (%v)", node.Name, err))
		case !changed.Over:
			left = append(left, node.Name)
		case changed.Missing != "":
			left = append(left, fmt.Sprintf("%s (%s)", node.Name, changed.Missing))
		}
	}
	for _, name := range c.flags.Exclude {
		if why := c.unserved[name]; why != "" {
			left = append(left, fmt.Sprintf("%s (its load balancer was not verified: %s)", name, why))
		}
	}
	for _, name := range c.joined {
		left = append(left, name+" (it joined during the change)")
	}
	if len(left) == 0 {
		return ""
	}
	named := left[:min(len(left), maxNamedNodes)]
	more := ""
	if len(left) > maxNamedNodes {
		more = fmt.Sprintf(" and %d more", len(left)-maxNamedNodes)
	}
	return fmt.Sprintf("%s left: %s%s; ", words.Count(len(left), "node"), strings.Join(named, ", "), more)
}
