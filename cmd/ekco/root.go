package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/version"
)

// run executes one command line and returns the exit code.
func run(ctx context.Context, a *app, args []string) int {
	root := newRootCommand(a) //nolint:contextcheck // cobra sets the context of a command when it runs
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	help := root.HelpFunc()
	var unknown error
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		// Cobra shows help before it checks arguments.
		if typed := cmd.Flags().Args(); len(typed) > 0 && cmd.HasAvailableSubCommands() {
			unknown = unknownCommand(cmd, typed[0])
			return
		}
		help(cmd, args)
	})
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = unknown
	}
	return printError(a.stderr, strings.TrimSuffix(cmd.CommandPath(), " help"), err)
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "ekco",
		Short: "Keep a kURL cluster alive",
		Long: `EKCO notices lost nodes, frees their pods, and removes dead nodes for good.
It records everything that it sees, decides and does in its journal first.

Every command talks to the running operator through the socket next to the
journal (/var/lib/ekco/journal.sock for /var/lib/ekco/journal.db). If no
operator runs, commands read the journal's file.

Exit codes: 0 done; 1 failed or refused; 2 the command line or the
configuration makes no sense; 3, of "journal verify" alone, the file is not a
journal of EKCO.`,
		Example: `  ekco status
  ekco history --since 1h
  ekco purge-node worker-2`,
		Args:          noArgument,
		Version:       version.Get().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stderr, version.Get())
			return err
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(newHelpCommand())
	root.PersistentPreRunE = a.checkLogLevel
	root.PersistentFlags().String("config", "", "configuration file; default: config.yaml (or .yml, .json, .toml) in /etc/ekco, $HOME or the working directory")
	config.RegisterFlags(root.PersistentFlags(), "log_level", "journal")
	root.SetFlagErrorFunc(unknownFlagError)
	root.AddCommand(
		newOperatorCommand(a),
		newPurgeNodeCommand(a),
		newNodeReportCommand(a),
		newStatusCommand(a),
		newHistoryCommand(a),
		newExplainCommand(a),
		newCertificatesCommand(a),
		newRegenCertCommand(a),
		newRotateCertsCommand(a),
		newRotateKotsadmCertsCommand(a),
		newGenerateHAProxyConfigCommand(a),
		newGenerateHAProxyManifestCommand(a),
		newSetKubeconfigServerCommand(a),
		newChangeLoadBalancerCommand(a),
		newReportCommand(a),
		newPauseCommand(a),
		newResumeCommand(a),
		newRetryCommand(a),
		newCancelCommand(a),
		newJournalCommand(a),
		newVersionCommand(a),
		newJournalChildCommand(),
		newHostTaskCommand(a),
		newFlattenConfigCommand(),
	)
	addCompletionCommand(root)
	complete(root, "log_level", func(*cobra.Command) []string { return []string{"debug", "info", "warn", "error"} })
	wrapArgs(root)
	spellFlags(root)
	return root
}

// newHelpCommand replaces cobra's command, which shows the help of ekco if the command is unknown.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: "  ekco help purge-node",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return usageError{err}
			case len(rest) > 0:
				return unknownCommand(of, rest[0])
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// checkLogLevel rejects an unknown level, even if the command logs nothing.
func (a *app) checkLogLevel(cmd *cobra.Command, _ []string) error {
	notSet := func(string) (string, bool) { return "", false }
	_, err := config.Load(config.Sources{Env: notSet, Flags: cmd.Flags(), Only: []string{"log_level"}})
	return err
}

// wrapArgs turns errors about the number of arguments into usage errors.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		wrapArgs(child)
	}
}
