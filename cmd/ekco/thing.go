package main

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
)

// readThing reads KIND/NAME, or the bare name of a node. The name after a kind may contain a namespace.
func readThing(cmd *cobra.Command, text string) (api.ThingRequest, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found {
		kind, name = fsmnode.Machine, text
	}
	if kind == "" || name == "" {
		return api.ThingRequest{}, usagef("%s takes a node's name or KIND/NAME, such as node/worker-2; it was given %q", commandName(cmd), text)
	}
	return api.ThingRequest{Kind: kind, Name: name}, nil
}

// qualifyNode returns "node/NAME" for the bare name of a node that exists or is paused, because other things often have
// the names of nodes. It returns every other word unchanged.
func qualifyNode(ctx context.Context, backend api.Backend, word string) string {
	status, err := backend.Status(ctx)
	if err != nil {
		return word // the command itself reports the error
	}
	_, paused := status.Pauses[word]
	if word != "" && (paused || isNode(status, word)) {
		return fsmnode.Machine + "/" + word
	}
	return word
}

func isNode(status api.Status, name string) bool {
	return slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool { return node.Name == name })
}

// thingNames returns each KIND/NAME in the status once.
func (a *app) thingNames(cmd *cobra.Command) []string { return thingNames(a.statusForCompletion(cmd)) }

func thingNames(status api.Status) []string {
	var names []string
	for _, node := range status.Nodes {
		names = append(names, fsmnode.Machine+"/"+node.Name)
	}
	for _, thing := range status.Things {
		names = append(names, thing.Machine+"/"+thing.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
