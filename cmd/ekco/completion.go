package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/view"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
)

// completionPatience is how long a shell may wait for names.
const completionPatience = 2 * time.Second

// addCompletionCommand adds cobra's command, which without a shell, or with one
// it does not know, would show its help and succeed.
func addCompletionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = noArgument
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// complete gives a flag the values that a shell offers.
func complete(cmd *cobra.Command, flag string, values func(*cobra.Command) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		// Only a flag that does not exist, or is completed twice.
		panic(err)
	}
}

// completeFirst offers values for the first argument.
func completeFirst(values func(*cobra.Command) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	}
}

// ask returns the status for a completion; nothing is offered without one.
func (a *app) ask(cmd *cobra.Command) api.Status {
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	backend, err := a.connect(ctx, cmd)
	if err != nil {
		return api.Status{}
	}
	defer backend.close()
	status, err := backend.Status(ctx)
	if err != nil {
		return api.Status{}
	}
	return status
}

func (a *app) nodeNames(cmd *cobra.Command) []string {
	return nodeNames(a.ask(cmd), func(api.NodeStatus) bool { return true })
}

// presentNodes leaves out the nodes that are no more.
func (a *app) presentNodes(cmd *cobra.Command) []string {
	return nodeNames(a.ask(cmd), presentNode)
}

func presentNode(node api.NodeStatus) bool {
	return node.State != fsmnode.Purged && node.State != fsmnode.Gone
}

// nodeNames returns each name once: several nodes may have had it.
func nodeNames(status api.Status, wanted func(api.NodeStatus) bool) []string {
	var names []string
	for _, node := range status.Nodes {
		if wanted(node) {
			names = append(names, node.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (a *app) pausedNames(cmd *cobra.Command) []string {
	var names []string
	for _, pause := range view.PausesOf(a.ask(cmd)) {
		if pause.Word != "" {
			names = append(names, pause.Word)
		}
	}
	return names
}

func (a *app) actionIDs(cmd *cobra.Command) []string {
	var ids []string
	for _, action := range a.ask(cmd).Actions {
		ids = append(ids, action.ID)
	}
	return ids
}

// maxEnded is how many ended actions are offered.
const maxEnded = 50

// actionsOfHistory returns the open actions and those that ended last, the
// newest first.
func (a *app) actionsOfHistory(cmd *cobra.Command) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
	defer cancel()
	backend, err := a.connect(ctx, cmd)
	if err != nil {
		return nil
	}
	defer backend.close()
	return actionsKnown(ctx, backend)
}

// actionsKnown returns what ids it can find before ctx ends.
func actionsKnown(ctx context.Context, backend api.Backend) []string {
	var ids []string
	if status, err := backend.Status(ctx); err == nil {
		for _, action := range status.Actions {
			ids = append(ids, action.ID)
		}
	}
	ended := journal.Query{Types: []journal.Type{journal.TypeActionEnded}, Reverse: true, Limit: maxEnded}
	for event, err := range backend.Events(ctx, ended, false) {
		if err != nil {
			break
		}
		ids = append(ids, event.Action)
	}
	return ids
}

func eventTypes(*cobra.Command) []string {
	var types []string
	for _, t := range journal.Types() {
		types = append(types, string(t))
	}
	return types
}
