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

const completionTimeout = 2 * time.Second

// addCompletionCommand replaces cobra's completion command. Cobra's command prints its help and succeeds if the shell
// is missing or unknown.
func addCompletionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Args = noArgument
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// complete sets the values that a shell offers for a flag.
func complete(cmd *cobra.Command, flag string, values func(*cobra.Command) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		// The only causes are a flag that does not exist, or a second call for the same flag.
		panic(err)
	}
}

// completeFirst sets the values for the first argument.
func completeFirst(values func(*cobra.Command) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(cmd), cobra.ShellCompDirectiveNoFileComp
	}
}

// statusForCompletion returns the status for a completion, or an empty status on an error.
func (a *app) statusForCompletion(cmd *cobra.Command) api.Status {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
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
	return nodeNames(a.statusForCompletion(cmd), func(api.NodeStatus) bool { return true })
}

// presentNodes returns the names of the nodes, except purged and gone nodes.
func (a *app) presentNodes(cmd *cobra.Command) []string {
	return nodeNames(a.statusForCompletion(cmd), presentNode)
}

func presentNode(node api.NodeStatus) bool {
	return node.State != fsmnode.Purged && node.State != fsmnode.Gone
}

// nodeNames returns names without duplicates, because a Node may have been created again with the same name.
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
	for _, pause := range view.PausesOf(a.statusForCompletion(cmd)) {
		if pause.Word != "" {
			names = append(names, pause.Word)
		}
	}
	return names
}

func (a *app) actionIDs(cmd *cobra.Command) []string {
	var ids []string
	for _, action := range a.statusForCompletion(cmd).Actions {
		ids = append(ids, action.ID)
	}
	return ids
}

// maxEnded is the maximum number of ended actions that a shell offers.
const maxEnded = 50

func (a *app) actionsOfHistory(cmd *cobra.Command) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	backend, err := a.connect(ctx, cmd)
	if err != nil {
		return nil
	}
	defer backend.close()
	return actionsKnown(ctx, backend)
}

// actionsKnown returns the ids of the open and the latest ended actions, as far as it can read them before ctx ends.
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
