package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/replicatedhq/ekco/fsm"
)

// argument describes the single argument of a command.
type argument struct {
	// is names it in the error for too many arguments.
	is string
	// ask is the error if it is missing.
	ask string
}

var (
	nodeArgument   = argument{is: "the node's name", ask: "give the node's name"}
	actionArgument = argument{is: "an action's id, or the name of its node or thing", ask: `give the action's id, which "ekco status" shows, or the name of its node or thing`}
	thingArgument  = argument{is: "KIND/NAME", ask: "give KIND/NAME, such as node/worker-2"}
	outArgument    = argument{is: "the name of the file to write", ask: "give the name of the file to write"}
	inArgument     = argument{is: "the name of the file to read", ask: "give the name of the file to read"}
	nameArgument   = argument{is: "the name of a node or thing"}
)

// required accepts exactly one argument.
func (a argument) required(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return usagef("%s: %s %s", a.ask, cmd.Parent().CommandPath(), cmd.Use)
	}
	return usagef("%s takes one argument, %s; it was given %s", called(cmd), a.is, listed(args))
}

// optional accepts one argument, or no argument.
func (a argument) optional(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return nil
	}
	return usagef("%s takes at most one argument, %s; it was given %s", called(cmd), a.is, listed(args))
}

// noArgument accepts no argument. To a command with subcommands, an argument is an unknown subcommand.
func noArgument(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasAvailableSubCommands():
		return unknownCommand(cmd, args[0])
	}
	return usagef("%s takes no argument; it was given %s", called(cmd), listed(args))
}

func unknownCommand(cmd *cobra.Command, name string) error {
	of := ""
	if cmd.HasParent() {
		of = " of " + strconv.Quote(cmd.CommandPath())
	}
	var known []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			known = append(known, child.Name())
		}
	}
	return usagef("unknown command %q%s%s", name, of, fsm.DidYouMean(fsm.Near(name, slices.Values(known))))
}

// wrongFlag is the error of an unknown flag. If an unknown command precedes it, that is the error.
func wrongFlag(cmd *cobra.Command, err error) error {
	if typed := cmd.Flags().Args(); len(typed) > 0 && cmd.HasAvailableSubCommands() {
		return unknownCommand(cmd, typed[0])
	}
	return usageError{fmt.Errorf("%w%s", err, nearFlag(cmd, err))}
}

// nearFlag suggests flags with a name like that of the unknown one.
func nearFlag(cmd *cobra.Command, err error) string {
	wrong, is := errors.AsType[*pflag.NotExistError](err)
	if !is || len(wrong.GetSpecifiedName()) < 2 {
		return ""
	}
	var known []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
	return fsm.DidYouMean(fsm.Near("--"+wrong.GetSpecifiedName(), slices.Values(known)))
}

// called returns the name of a command without "ekco".
func called(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

func listed(args []string) string {
	quoted := make([]string, 0, len(args))
	for _, arg := range args {
		quoted = append(quoted, strconv.Quote(arg))
	}
	return strconv.Itoa(len(args)) + ": " + strings.Join(quoted, ", ")
}
