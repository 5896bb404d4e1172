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
	// name names the argument in the error for too many arguments.
	name string
	// missing is the error if the argument is missing.
	missing string
}

var (
	nodeArgument   = argument{name: "the node's name", missing: "give the node's name"}
	actionArgument = argument{name: "an action's id, or the name of its node or thing", missing: `give the action's id, which "ekco status" shows, or the name of its node or thing`}
	thingArgument  = argument{name: "KIND/NAME", missing: "give KIND/NAME, such as node/worker-2"}
	outArgument    = argument{name: "the name of the file to write", missing: "give the name of the file to write"}
	inArgument     = argument{name: "the name of the file to read", missing: "give the name of the file to read"}
	nameArgument   = argument{name: "the name of a node or thing"}
)

// requireOne returns an error unless there is exactly one argument.
func (a argument) requireOne(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return usagef("%s: %s %s", a.missing, cmd.Parent().CommandPath(), cmd.Use)
	}
	return usagef("%s takes one argument, %s; it was given %s", commandName(cmd), a.name, listArgs(args))
}

// allowOne returns an error for more than one argument.
func (a argument) allowOne(cmd *cobra.Command, args []string) error {
	if len(args) < 2 {
		return nil
	}
	return usagef("%s takes at most one argument, %s; it was given %s", commandName(cmd), a.name, listArgs(args))
}

// noArgument returns an error for any argument. If the command has subcommands, the error says that the subcommand is
// unknown.
func noArgument(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasAvailableSubCommands():
		return unknownCommand(cmd, args[0])
	}
	return usagef("%s takes no argument; it was given %s", commandName(cmd), listArgs(args))
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

// unknownFlagError returns the error for an unknown flag. If an unknown command precedes the flag, it returns the error
// for that command.
func unknownFlagError(cmd *cobra.Command, err error) error {
	if typed := cmd.Flags().Args(); len(typed) > 0 && cmd.HasAvailableSubCommands() {
		return unknownCommand(cmd, typed[0])
	}
	return usageError{fmt.Errorf("%w%s", err, suggestFlags(cmd, err))}
}

// suggestFlags returns a suggestion of similar flags if the error is about an unknown flag, or "".
func suggestFlags(cmd *cobra.Command, err error) string {
	wrong, is := errors.AsType[*pflag.NotExistError](err)
	if !is || len(wrong.GetSpecifiedName()) < 2 {
		return ""
	}
	var known []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, "--"+flag.Name) })
	return fsm.DidYouMean(fsm.Near("--"+wrong.GetSpecifiedName(), slices.Values(known)))
}

// commandName returns the name of a command without "ekco".
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

func listArgs(args []string) string {
	quoted := make([]string, 0, len(args))
	for _, arg := range args {
		quoted = append(quoted, strconv.Quote(arg))
	}
	return strconv.Itoa(len(args)) + ": " + strings.Join(quoted, ", ")
}
