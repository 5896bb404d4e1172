package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
)

// readThing parses KIND/NAME. The name may contain a namespace.
func readThing(cmd *cobra.Command, text string) (api.ThingRequest, error) {
	kind, name, found := strings.Cut(text, "/")
	if !found || kind == "" || name == "" {
		return api.ThingRequest{}, usagef("%s takes KIND/NAME, such as node/worker-2; it was given %q", commandName(cmd), text)
	}
	return api.ThingRequest{Kind: kind, Name: name}, nil
}

// thingNames returns all KIND/NAME in the status without duplicates.
func (a *app) thingNames(cmd *cobra.Command) []string { return thingNames(a.ask(cmd)) }

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
