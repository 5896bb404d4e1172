package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/api"
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
	var names []string
	for _, node := range a.ask(cmd).Nodes {
		names = append(names, node.Name)
	}
	return names
}

// presentNodes leaves out the nodes that are no more.
func (a *app) presentNodes(cmd *cobra.Command) []string {
	var names []string
	for _, node := range a.ask(cmd).Nodes {
		if node.State != fsm.Purged && node.State != fsm.Gone {
			names = append(names, node.Name)
		}
	}
	return names
}

func (a *app) pausedNodes(cmd *cobra.Command) []string {
	var names []string
	for node := range a.ask(cmd).Pauses {
		if node != "" {
			names = append(names, node)
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

func eventTypes(*cobra.Command) []string {
	var types []string
	for _, t := range journal.Types() {
		types = append(types, string(t))
	}
	return types
}
